// Where two runs that must be equal come apart: the first step, and in it the first stage of the
// training step. What was computed before it is still equal, so the defect lies between.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/run_trace.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

// The stages in the order of a training step. kOther: the stage of a signal is unknown.
enum class StepStage {
  kData,
  kForward,
  kBackward,
  kScaling,
  kClipping,
  kSchedule,
  kUpdate,
  kEvaluation,
  kOther
};
const char* ToString(StepStage stage);  // "data", "forward pass", ...
// The stage of a signal, by its name in the reference trainer and most logs.
StepStage StageOf(const std::string& signal);

// What differs in the first checkpoint in which two runs differ.
struct StateApart {
  int steps_done = 0;                // of the checkpoint
  std::vector<std::string> entries;  // by name
};

// Compares the checkpoints of the same number of steps that both runs have saved, by the digests of
// their entries (`entry_digests` of checkpoint_saved). Where a run has saved one twice, after a
// restart, its last one counts. Empty: none differs, or no digests were written.
std::optional<StateApart> FirstStateApart(const RunTrace& run, const RunTrace& other);
// "first checkpoint apart, after 40 steps: optimizer.exp_avg.a, optimizer.exp_avg.b and 3 more"
std::string ToString(const StateApart& apart);

struct Place {
  int step = 0;
  std::string signal;  // the first that differs there
  StepStage stage = StepStage::kOther;
  std::vector<std::string> equal;  // at that step, of earlier stages, without modules
};

// Compares rank 0 of both. A signal is apart when it is further from control than 8 times the
// distance that the rounding draws have reached by then; without draws, when any bit differs.
// Counts and digests are left out when they differ in the first step while no computed signal does:
// a rank among several has other samples than a single rank. Empty: no common signal differs.
std::optional<Place> FirstApart(const RunTrace& twin, const RunTrace& control,
                                const std::vector<const RunTrace*>& draws,
                                const TargetDescription& target);

// "apart first at step 3: grad_norm{head.weight} (backward pass); equal until there: loss"
std::string ToString(const Place& place);

// Suspect parts of a training stack, the likeliest first: what the twin is about, then the parts of
// the stage.
std::vector<std::string> SuspectsOf(const Place& place, const Twin& twin);

}  // namespace trainwreck
