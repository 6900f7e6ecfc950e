#include "harness/campaign/trace_budget.h"

#include "harness/protocol/trace_memory.h"

namespace trainwreck {

void TraceBudget::Admit(RunResult& result) {
  const std::int64_t bytes = MemoryBytes(result.trace);
  if (bytes <= left_bytes_) {
    left_bytes_ -= bytes;
    return;
  }
  RunTrace empty;
  empty.planned_steps = result.trace.planned_steps;
  empty.world_size = result.trace.world_size;
  empty.finished = true;
  result.trace = std::move(empty);
  result.end = RunEnd::kGarbage;
  result.detail = "its trace takes " + std::to_string((bytes >> 20) + 1) +
                  " MiB of memory, with which the traces of this case are over their bound: record "
                  "fewer signals or steps";
}

}  // namespace trainwreck
