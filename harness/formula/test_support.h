// Small runs and a small target for the tests of this package.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/formula/formula.h"

namespace trainwreck::formula::testing {

// Signals: loss, grad_norm (log scale), lr (linear), param_norm and update_norm (log, per module),
// updated (exact, per module), param_digest, sample_digest, skipped (exact), tokens (exact, log),
// eval_loss (log, sparse). Events: the harness's own, and sample_rejected {sample, why}.
const TargetDescription& TestTarget();

// A run that is built with one call for each fact: TestRun(10).With("loss", {3,
// 2}).Happened("fired", 5).
class TestRun {
 public:
  explicit TestRun(int planned_steps, int world_size = 1);
  // Values of steps 0, 1, ...; a missing sample is written kMissing.
  TestRun& With(const std::string& signal, const std::vector<double>& values, int rank = 0);
  TestRun& At(const std::string& signal, int step, double value, int rank = 0);
  TestRun& Happened(const std::string& event, int step, Json fields = Json::object(), int rank = 0,
                    double time_s = 0);
  TestRun& Times(const std::vector<double>& times, int rank = 0);
  TestRun& Unfinished();

  const RunTrace& trace() const { return trace_; }
  RunTrace& trace() { return trace_; }

 private:
  RunTrace trace_;
};
extern const double kMissing;
extern const double kNan;
extern const double kInf;

// The run as it is after its first `steps` steps.
RunTrace Prefix(const RunTrace& full, int steps);

Vocabulary TestVocabulary(int planned_steps, int world_size = 1);

// Parses and evaluates; a formula that does not parse fails the test with its error.
Reading Read(const std::string& text, const TestRun& run);
Reading Read(const std::string& text, const RunTrace& self,
             const std::map<std::string, const RunTrace*>& arms = {});

// All errors of parsing, or else of checking, one a line: "5-9: unknown signal 'los' (did you mean
// 'loss'?)".
std::string Errors(const std::string& text, const Vocabulary& vocabulary);

}  // namespace trainwreck::formula::testing
