// memory.budget: a smaller device, or one that others have filled: training gets so many bytes for
// its tensors and no more.
#include "injectors/registry.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "memory.budget",
          .doc = "Lets each rank have so many bytes of tensor memory.",
          .params = {{.name = "bytes",
                      .type = ValueType::kInt,
                      .default_value = nullptr,
                      .min = 1.0,
                      .unit = "B",
                      .doc = "An allocation past it fails with the framework's out-of-memory "
                             "error; see memory_peak_bytes for what a run needs."}},
          .amends = {{.key = "memory.limit_bytes", .op = Amendment::Op::kSet, .param = "bytes"}},
          .has_trigger = false,
          .evidence =
              "key, and the limit before (0: none) and after; the run's out_of_memory "
              "event has the allocation that failed"};
}

REGISTER_RECIPE_FAULT(Info);

}  // namespace
}  // namespace trainwreck
