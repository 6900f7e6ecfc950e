// The learning-rate range test: a grid of rates, runs at each of them, and what they say of the
// recipe's own rate. L. N. Smith (2017) ramps the rate within one run; whole runs cost more and see
// what comes late.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/checkup/known.h"
#include "harness/checkup/lr_curve.h"
#include "harness/protocol/json.h"
#include "harness/session/session.h"

namespace trainwreck {

struct RateGrid {
  double own = 0;                  // the recipe's rate
  std::optional<double> from, to;  // else the recipe's rate / 1000 and * 100
  int rates = 16;
};

// Even steps of the logarithm. Throws UsageError when the ends are none.
std::vector<double> RatesOf(const RateGrid& grid);

// By rate, rising; nothing when interrupted.
using MeasuredRates = std::optional<std::vector<RatePoint>>;

// Measures the grid. Ends that were not given move on, a few times, where the range does not end
// in it.
MeasuredRates MeasureRange(const RateGrid& grid,
                           const std::function<MeasuredRates(const std::vector<double>&)>& measure);

// Runs of so many steps at each rate, one a seed of the patient. Throws ConfigurationError when
// runs could not be made.
MeasuredRates RunAtRates(const Patient& patient, const std::vector<double>& rates, int steps,
                         const Session& session, int cores);

// The rate of the patient's recipe. Throws UsageError when the target has no key for it.
double OwnRateOf(const Patient& patient, const TargetDescription& target);

// Remedies and decoys of the scenario that shows the same failure.
struct RateAdvice {
  std::string scenario;  // empty: the rate is good, or the scenario is not among the scenarios
  std::vector<std::string> next, not_first;
};

struct LrRangeResult {
  std::string recipe;
  std::string key;  // of the rate: "optimizer.lr"
  double own_rate = 0;
  std::vector<RatePoint> points;
  LrRange range;
  std::optional<RateVerdict> verdict;  // of the own rate; empty: no rate learns
  RateAdvice advice;
};

LrRangeResult ConcludeRange(const std::string& recipe, double own_rate,
                            std::vector<RatePoint> points, const Session& session);

const char* TextOf(RateVerdict verdict);  // "too high: it diverges"

Json ToJson(const LrRangeResult& result);

}  // namespace trainwreck
