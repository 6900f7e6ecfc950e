// recipe.bad_init: initial weights of a size that ignores the width of the layers, or all the same.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.bad_init",
          .doc = "Draws the initial weights of hidden layers without regard to their width.",
          .params = {{.name = "kind",
                      .type = ValueType::kString,
                      .default_value = "normal",
                      .choices = {"normal", "constant"},
                      .unit = "",
                      .doc = "Drawn at random, or all equal."},
                     {.name = "std",
                      .type = ValueType::kNumber,
                      .default_value = nullptr,
                      .min = 0,
                      .unit = "weight",
                      .doc = "Standard deviation, or the value of all."}},
          .amends = {{.key = "model.init", .op = Amendment::Op::kSet, .param = "kind"},
                     {.key = "model.init_std", .op = Amendment::Op::kSet, .param = "std"}},
          .has_trigger = false,
          .evidence = "keys, and their values before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
