// recipe.low_precision_state: moments of the optimizer in 16 bits, to save memory.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.low_precision_state",
          .doc = "Keeps the optimizer's moments in fewer bits; its epsilon stays what it was.",
          .params = {{.name = "dtype",
                      .type = ValueType::kString,
                      .default_value = "fp16",
                      .choices = {"fp16", "bf16"},
                      .doc = "What optimizer.state_dtype becomes."}},
          .amends = {{.key = "optimizer.state_dtype", .op = Amendment::Op::kSet, .param = "dtype"}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
