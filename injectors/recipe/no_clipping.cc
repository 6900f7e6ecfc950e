// recipe.no_clipping: gradient clipping that was switched off, or lost in a rewrite of the loop.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.no_clipping",
          .doc = "Takes gradient clipping away.",
          .amends = {{.key = "optimizer.clip_norm", .op = Amendment::Op::kSet, .value = 0}},
          .has_trigger = false,
          .evidence = "key, and the clipping norm before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
