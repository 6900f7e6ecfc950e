// One step of a stored run, made again alone from a checkpoint, with everything recorded that the
// target can tell of it. The checkpoint is the one that the run saved when the step failed (event
// `evidence_saved`) or, where there is none, comes from making the run again up to the step.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/plan/run.h"
#include "harness/protocol/run_trace.h"
#include "harness/session/session.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {

// The step at which a run failed, on any rank: of its first loss that is not finite or, where it
// died, the step in progress. Empty: it did not fail.
std::optional<int> FailingStep(const RunTrace& trace);

// The stored run with everything recorded that helps to understand the step. Throws UsageError
// where the run has not the step, has phases of its own, or a fault or the recipe names one.
Run RunToReplay(Run stored, int step, const TargetDescription& target);

// The plan of a replay of that run: in two phases, up to the step, and the step. `is_last`: with
// this step the run ended as it meant to, so that it may do then what it does at its end (where it
// stops early, it goes back to its best weights).
Run ReplayOf(Run run, int step, bool is_last = false);

// The checkpoint before the step that all ranks of the stored run saved in its folder; empty: at
// least one of them did not.
std::vector<std::string> SavedState(const StoredTrace& stored, const std::string& folder, int step);

// The plan of a replay from these files: the step alone.
Run ReplayFrom(std::vector<std::string> checkpoint_files, Run run, int step, bool is_last = false);

// The plan of a replay without a checkpoint: the run up to the step and with it, in one piece.
Run ReplayInOnePiece(Run run, int step, bool is_last);

// A signal at the step, before and now.
struct ReplayedSignal {
  std::string signal;
  int rank = 0;
  double stored = 0, now = 0;
  bool same = false;  // bit for bit; two NaN are the same
};

// The ranks that an exception ended in a step, each with the stage that threw.
using Deaths = std::set<std::pair<int, std::string>>;
Deaths DeathsIn(const RunTrace& trace, int step);

struct Replay {
  int step = 0;
  RunTrace trace;  // of the replay
  RunEnd end = RunEnd::kCompleted;
  std::string detail;            // of the end
  Deaths stored_deaths, deaths;  // in the step: of the stored run, and of this one
  bool from_saved_state = false;
  bool reports_batches = false;         // the target has the event `batch`
  bool saved_state_differs = false;     // so the run was made again up to the step instead
  bool checkpoint_differs = false;      // so the step was made with all before it, in one piece
  std::vector<ReplayedSignal> signals;  // that the stored run has at the step, without times

  int different() const;
  // Whether the stored run says anything of the step: a signal, or that it died there.
  bool has_record() const { return !signals.empty() || !stored_deaths.empty(); }
  // Whether all that it says is so again.
  bool is_same() const { return has_record() && different() == 0 && deaths == stored_deaths; }
  // Of the rank at the step; null where there is none.
  const Event* EventOf(const std::string& name, int rank) const;
  // The micro-batches: events `batch`, in order.
  std::vector<const Event*> Batches(int rank) const;
};

// Makes the replay of a run stored in `folder`: from its saved state where that leads to the same
// bits and end (a fault may have acted within the step, before the state was saved); else from a
// checkpoint before the step; and where that leads elsewhere, in one piece. Empty when interrupted.
// Throws UsageError where RunToReplay does, and ConfigurationError when the runs could not be made.
std::optional<Replay> ReplayStep(const StoredTrace& stored, const std::string& folder, int step,
                                 const Session& session);

}  // namespace trainwreck
