// recipe.stretched_positions: rotary positions scaled for sequences far longer than there are.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.stretched_positions",
          .doc = "Scales rotary positions down, until neighbours can't be told apart.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 0.0,
                      .min = 0,
                      .max = 1,
                      .unit = "times",
                      .doc = "What model.rotary_scale is multiplied by; 0 puts all at the same "
                             "place."}},
          .amends = {{.key = "model.rotary_scale", .op = Amendment::Op::kScale, .param = "factor"}},
          .has_trigger = false,
          .evidence = "key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
