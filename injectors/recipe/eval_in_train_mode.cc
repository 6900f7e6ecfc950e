// recipe.eval_in_train_mode: model.eval() that is missing.
#include "injectors/registry.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.eval_in_train_mode",
          .doc = "Evaluates with the model in training mode.",
          .amends = {{.key = "eval.mode", .op = Amendment::Op::kSet, .value = "train"}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
