// recipe.softmax_over_positions: a softmax over the wrong dimension.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "recipe.softmax_over_positions",
      .doc =
          "Takes the softmax over the positions of a sequence, where it belongs over the classes.",
      .amends = {{.key = "loss.softmax_over", .op = Amendment::Op::kSet, .value = "positions"}},
      .has_trigger = false,
      .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
