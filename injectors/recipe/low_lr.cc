// recipe.low_lr: a learning rate that someone set far too low, or divided once too often.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.low_lr",
          .doc = "Multiplies the peak learning rate by a factor below 1.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 0.001,
                      .min = 0,
                      .max = 1,
                      .unit = "times",
                      .doc = "What optimizer.lr is multiplied by."}},
          .amends = {{.key = "optimizer.lr", .op = Amendment::Op::kScale, .param = "factor"}},
          .has_trigger = false,
          .evidence = "key, and the learning rate before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
