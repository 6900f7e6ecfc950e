// recipe.high_label_smoothing: label smoothing of which little of the label is left.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.high_label_smoothing",
          .doc = "Sets the label smoothing.",
          .params = {{.name = "value",
                      .type = ValueType::kNumber,
                      .default_value = 0.9,
                      .min = 0,
                      .max = 1,
                      .unit = "share",
                      .doc = "What loss.label_smoothing becomes."}},
          .amends = {{.key = "loss.label_smoothing", .op = Amendment::Op::kSet, .param = "value"}},
          .has_trigger = false,
          .evidence = "key, and the smoothing before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
