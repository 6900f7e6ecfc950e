// recipe.no_normalisation: layer norm that was left out of a deep net.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.no_normalisation",
          .doc = "Takes layer norm out of the hidden layers.",
          .amends = {{.key = "model.layer_norm", .op = Amendment::Op::kSet, .value = false}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
