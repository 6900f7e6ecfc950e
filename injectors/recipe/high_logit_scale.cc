// recipe.high_logit_scale: a softmax temperature that was set, or learned, far too low.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.high_logit_scale",
          .doc = "Multiplies the factor on similarities, the inverse temperature.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 10.0,
                      .min = 1,
                      .unit = "times",
                      .doc = "What model.logit_scale is multiplied by."}},
          .amends = {{.key = "model.logit_scale", .op = Amendment::Op::kScale, .param = "factor"}},
          .has_trigger = false,
          .evidence = "key, and the factor on similarities before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
