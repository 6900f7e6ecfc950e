// recipe.saturating_activation: an activation whose derivative is small everywhere.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.saturating_activation",
          .doc = "Replaces the activation of hidden layers by one that saturates.",
          .params = {{.name = "kind",
                      .type = ValueType::kString,
                      .default_value = "sigmoid",
                      .choices = {"sigmoid", "tanh"},
                      .unit = "",
                      .doc = "What model.activation becomes."}},
          .amends = {{.key = "model.activation", .op = Amendment::Op::kSet, .param = "kind"}},
          .has_trigger = false,
          .evidence = "key, and the activation before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
