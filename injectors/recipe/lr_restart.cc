// recipe.lr_restart: a warm restart in the middle of a run, far above the rate that it began with.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "recipe.lr_restart",
      .doc = "Begins the decay of the learning rate again, from a multiple of the peak.",
      .params = {{.name = "step",
                  .type = ValueType::kInt,
                  .default_value = nullptr,
                  .min = 1,
                  .unit = "steps",
                  .doc = "What schedule.restart_step becomes."},
                 {.name = "ratio",
                  .type = ValueType::kNumber,
                  .default_value = nullptr,
                  .min = 0,
                  .unit = "times",
                  .doc = "What schedule.restart_ratio becomes."}},
      .amends = {{.key = "schedule.restart_step", .op = Amendment::Op::kSet, .param = "step"},
                 {.key = "schedule.restart_ratio", .op = Amendment::Op::kSet, .param = "ratio"}},
      .has_trigger = false,
      .evidence = "each key, and its value before and after"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
