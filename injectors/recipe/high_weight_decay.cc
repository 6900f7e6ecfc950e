// recipe.high_weight_decay: a weight decay that overwhelms the gradient.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "recipe.high_weight_decay",
      .doc = "Sets the weight decay.",
      .params = {{.name = "value",
                  .type = ValueType::kNumber,
                  .default_value = 10.0,
                  .min = 0,
                  .unit = "1 / (LR * steps)",
                  .doc = "What optimizer.weight_decay becomes."}},
      .amends = {{.key = "optimizer.weight_decay", .op = Amendment::Op::kSet, .param = "value"}},
      .has_trigger = false,
      .evidence = "key, and the weight decay before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
