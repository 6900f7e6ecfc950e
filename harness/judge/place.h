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

// In the order of a training step. kOther: a signal whose name says nothing.
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
// By the name of a signal, as the reference trainer and most logs have it.
StepStage StageOf(const std::string& signal);

struct Place {
  int step = 0;
  std::string signal;  // the first that differs there
  StepStage stage = StepStage::kOther;
  std::vector<std::string> equal;  // at that step, of earlier stages, without modules
};

// Rank 0 of both. Apart is what is further from control than 8 times what the draws of rounding
// reached until then, and without draws any other bits. Counts and digests that differ in the first
// step while nothing that is computed does are left out: the samples of one rank among several are
// not those of one rank alone. Empty: nothing that both recorded differs.
std::optional<Place> FirstApart(const RunTrace& twin, const RunTrace& control,
                                const std::vector<const RunTrace*>& draws,
                                const TargetDescription& target);

// "apart first at step 3: grad_norm{head.weight} (backward pass); equal until there: loss"
std::string ToString(const Place& place);

// Parts of a training stack, the likeliest first: what the twin is about, then what the stage
// consists of.
std::vector<std::string> SuspectsOf(const Place& place, const Twin& twin);

}  // namespace trainwreck
