// recipe.no_loss_scaling: fp16 without the scaler that keeps small gradients from vanishing.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.no_loss_scaling",
          .doc = "Takes the loss scaler out.",
          .amends = {{.key = "scaler.kind", .op = Amendment::Op::kSet, .value = "none"}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
