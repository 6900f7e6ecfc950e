// The steps that a run made, from its traces, to compare with the planned ones. For the launcher,
// which writes the event `ended_early`, and for the judge.
#pragma once

#include <optional>

#include "harness/protocol/run_trace.h"

namespace trainwreck {

struct StepsDone {
  int rank = 0;  // the rank that came least far
  int steps = 0;
};

// The steps of the rank that made the fewest, among ranks that wrote steps; empty: no rank wrote
// any. A rank without a `start` does not count where the first one has written its: only its output
// is known. A program may log only every tenth step: the steps between its last record and the next
// due one count as done.
std::optional<StepsDone> CountStepsDone(const RunTrace& trace);

}  // namespace trainwreck
