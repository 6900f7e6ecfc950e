// recipe.mask_looks_ahead: a causal mask that is off by one.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.mask_looks_ahead",
          .doc = "Shifts the causal mask, so that each position sees the tokens after it.",
          .params = {{.name = "by",
                      .type = ValueType::kInt,
                      .default_value = 1,
                      .min = 1,
                      .unit = "tokens",
                      .doc = "How many of them."}},
          .amends = {{.key = "model.mask_shift", .op = Amendment::Op::kSet, .param = "by"}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
