// recipe.no_warmup: the first update is made at the full peak learning rate.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.no_warmup",
          .doc = "Takes the learning rate's warmup away: the first step is at the peak.",
          .amends = {{.key = "schedule.warmup_steps", .op = Amendment::Op::kSet, .value = 0}},
          .has_trigger = false,
          .evidence = "key, and the warmup steps before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
