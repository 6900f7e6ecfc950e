// recipe.high_lr: a learning rate that someone set too high, or forgot to lower for a larger model.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.high_lr",
          .doc = "Multiplies the peak learning rate.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 10.0,
                      .min = 1.0,
                      .unit = "times",
                      .doc = "What optimizer.lr is multiplied by."}},
          .amends = {{.key = "optimizer.lr", .op = Amendment::Op::kScale, .param = "factor"}},
          .has_trigger = false,
          .evidence = "key, and the learning rate before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
