// recipe.wrong_reduction: a loss that is summed over an axis that it should be averaged over.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "recipe.wrong_reduction",
      .doc = "Sums the loss over the batch, or over the positions of each sample.",
      .params = {{.name = "kind",
                  .type = ValueType::kString,
                  .default_value = "sum",
                  .choices = {"sum", "sum_over_positions"},
                  .doc = "Over all targets; or over those of a sequence, and then the mean over "
                         "sequences."}},
      .amends = {{.key = "loss.reduction", .op = Amendment::Op::kSet, .param = "kind"}},
      .has_trigger = false,
      .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
