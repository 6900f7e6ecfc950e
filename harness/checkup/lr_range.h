// The learning-rate range test: runs at each rate of a grid, and what they say about the recipe's
// own rate. L. N. Smith (2017) ramps the rate within one run; whole runs cost more and also show
// late failures.
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

// The rates of the grid, in even steps of the logarithm. Throws UsageError when its ends make no
// range.
std::vector<double> RatesOf(const RateGrid& grid);

// The points in the order of their rates; empty when interrupted.
using MeasuredRates = std::optional<std::vector<RatePoint>>;

// Measures the grid. An end that was not given moves outwards, a few times at most, while the range
// goes on beyond it.
MeasuredRates MeasureRange(const RateGrid& grid,
                           const std::function<MeasuredRates(const std::vector<double>&)>& measure);

// Makes runs of so many steps at each rate, one for each seed of the patient. Throws
// ConfigurationError when runs could not be made.
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
  std::optional<RateVerdict> verdict;  // of the recipe's rate; empty: no rate learns
  RateAdvice advice;
};

LrRangeResult ConcludeRange(const std::string& recipe, double own_rate,
                            std::vector<RatePoint> points, const Session& session);

const char* TextOf(RateVerdict verdict);  // "too high: it diverges"

Json ToJson(const LrRangeResult& result);

}  // namespace trainwreck
