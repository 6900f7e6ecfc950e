// recipe.summed_micro_batches: accumulation that forgets to divide by the number of micro-batches.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.summed_micro_batches",
          .doc = "Adds up the losses of a step's micro-batches, where their mean was meant.",
          .amends = {{.key = "loss.accumulated", .op = Amendment::Op::kSet, .value = "sum"}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
