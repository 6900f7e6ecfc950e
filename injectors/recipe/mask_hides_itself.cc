// recipe.mask_hides_itself: a causal mask that is off by one, the other way.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.mask_hides_itself",
          .doc =
              "Shifts the causal mask, so that each position sees only those before its own, and "
              "the first none at all.",
          .amends = {{.key = "model.mask_shift", .op = Amendment::Op::kSet, .value = -1}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
