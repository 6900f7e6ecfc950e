// How far a run came: the steps that its traces show, against those that were planned. For the
// launcher, which writes the event `ended_early`, and for the judge.
#pragma once

#include <optional>

#include "harness/protocol/run_trace.h"

namespace trainwreck {

struct StepsDone {
  int rank = 0;  // the rank that came least far
  int steps = 0;
};

// Of the ranks that wrote steps, the one that did fewest; empty: no rank wrote any. A program may
// log every tenth step only: those between its last record and the one that was due next count as
// done.
std::optional<StepsDone> CountStepsDone(const RunTrace& trace);

}  // namespace trainwreck
