// precision.static_loss_scale: a loss scale that someone fixed by hand, far above what the
// gradients can bear.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "precision.static_loss_scale",
          .doc = "Replaces the loss scaler by one whose scale never changes.",
          .params = {{.name = "scale",
                      .type = ValueType::kNumber,
                      .default_value = 16777216,
                      .min = 1.0,
                      .max = 1e30,
                      .unit = "times",
                      .doc = "What the loss is multiplied by."}},
          .amends = {{.key = "scaler.kind", .op = Amendment::Op::kSet, .value = "static"},
                     {.key = "scaler.init_scale", .op = Amendment::Op::kSet, .param = "scale"}},
          .has_trigger = false,
          .evidence = "key, and the scaler's kind and scale before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
