// One step of a stored run, made again: the run up to the step, a checkpoint, and from it the step
// alone, with everything recorded that the target can tell of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/plan/run.h"
#include "harness/protocol/run_trace.h"
#include "harness/session/session.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {

// The step at which a run failed, on any rank: of its first loss that is not finite or, where it
// died, the step in progress. Empty: it did not fail.
std::optional<int> FailingStep(const RunTrace& trace);

// The plan of a replay: the stored run in two phases, up to the step, and the step. Throws
// UsageError where it has phases of its own, or a fault or the recipe names one.
Run ReplayOf(const Run& stored, int step, const TargetDescription& target);

// A signal at the step, before and now.
struct ReplayedSignal {
  std::string signal;
  int rank = 0;
  double stored = 0, now = 0;
  bool same = false;  // bit for bit; two NaN are the same
};

struct Replay {
  int step = 0;
  RunTrace trace;  // of the replay
  RunEnd end = RunEnd::kCompleted;
  std::string detail;                   // of the end
  std::vector<ReplayedSignal> signals;  // that the stored run has at the step, without times

  int different() const;
  // Of the rank at the step; null where there is none.
  const Event* EventOf(const std::string& name, int rank) const;
  // The micro-batches: events `batch`, in order.
  std::vector<const Event*> Batches(int rank) const;
};

// Makes the replay. Empty when interrupted. Throws UsageError where ReplayOf does, and
// ConfigurationError when the runs could not be made.
std::optional<Replay> ReplayStep(const StoredTrace& stored, int step, const Session& session);

}  // namespace trainwreck
