// Overfits one batch and two examples: whatever is wrong with the data or the model's size, a
// training program that works can learn so few samples by heart. Where it does not, some more short
// runs and their signals say where to look.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "harness/campaign/batches.h"
#include "harness/checkup/known.h"
#include "harness/protocol/json.h"
#include "harness/protocol/run_trace.h"
#include "harness/session/session.h"

namespace trainwreck {

// The loss has to fall to this share of that of the first step.
inline constexpr double kLearntShare = 0.1;

// What a run of few samples came to.
struct Fit {
  double start = 0;              // the first loss; infinite: not finite, or the run died
  double end = 0;                // the median of the last fifth, likewise
  std::optional<int> learnt_at;  // the first step with a loss that is low enough

  // A loss that is 0 from the start has nothing to learn from.
  bool learns() const { return start > 0 && std::isfinite(end) && end <= kLearntShare * start; }
};

Fit FitOf(const RunResult& result, int steps);

enum class FitVerdict { kLearns, kSomeSeeds, kDoesNotLearn };

// The same samples with several seeds.
struct Probe {
  std::string name;        // "two_examples"
  std::string what;        // "two examples"
  std::vector<Fit> seeds;  // by seed

  int learnt() const;
  FitVerdict verdict() const;
  std::optional<int> steps() const;  // until it is learnt, the median of the seeds that learn
};

// What a signal of a failing run points to.
struct FitClue {
  std::string seen;  // "the gradient is 0 in every step"
  std::string look;  // "the loss does not depend on the parameters: ..."
};

struct OverfitReport {
  std::string recipe;
  int steps = 0;
  std::vector<std::string> off;  // keys that were switched off: "model.dropout"
  std::vector<Probe> probes;     // two examples, one batch
  std::vector<Probe> more;       // with other rates, where one of these fails
  std::vector<FitClue> clues;

  FitVerdict verdict() const;  // the worse of the probes
};

// The changes of a recipe for a probe; names as in OverfitReport. Throws UsageError when the target
// has no key with the role `samples`.
Changes TwoExamples(const Recipe& recipe, const TargetDescription& target);
Changes OneBatch(const Recipe& recipe, const TargetDescription& target);
// Switches weight decay and all keys with the role `regularisation` off.
Changes WithoutRegularisation(const Recipe& recipe, const TargetDescription& target);

// What the trace of a run that does not learn shows, the likeliest cause first. `still`: the same
// run with a rate of 0, if there is one.
std::vector<FitClue> CluesOf(const RunTrace& trace, int steps, const RunTrace* still);

// Makes the runs; `steps` 0: as the recipe says, 200 at least. Empty when interrupted. Throws
// ConfigurationError when runs could not be made.
std::optional<OverfitReport> Overfit(const Patient& patient, int steps, const Session& session,
                                     int cores);

const char* TextOf(FitVerdict verdict);
Json ToJson(const OverfitReport& report);

}  // namespace trainwreck
