// The numbers that compare a run with control: step by step, or over the seeds of both.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/formula/evaluator.h"
#include "harness/statistics/spread.h"

namespace trainwreck::formula {
namespace {

// What a number of 32 bits can tell apart, relative to its size. Signals are computed from such, so
// a few draws that happen to agree do not promise more.
constexpr double kResolution = 1.0 / (1 << 23);
constexpr double kLeast = std::numeric_limits<double>::min();

constexpr double kSeedConfidence = 0.95;  // of what is read over seeds

// Infinite where one of the two is not finite, or not there for good.
Interval DistanceAt(const Samples& a, const Samples& b, int step) {
  const bool has_a = a.At(step) == SampleState::kPresent;
  const bool has_b = b.At(step) == SampleState::kPresent;
  if (!has_a || !has_b) {
    const bool for_good = (has_a && b.At(step) == SampleState::kAbsent) ||
                          (has_b && a.At(step) == SampleState::kAbsent);
    return for_good ? Point(kInfinity) : kAll;
  }
  const double x = a.Raw(step), y = b.Raw(step);
  if (std::isnan(x) && std::isnan(y)) return kAll;
  if (x == y) return Point(0);
  return Point(std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : kInfinity);
}

}  // namespace

std::vector<Interval> Evaluator::DistanceNumbers(const Node& signal, const Scope& scope) const {
  const Samples own = context_.SamplesOf(signal, scope);
  const Samples control = context_.ControlSamplesOf(signal, scope);
  std::vector<Interval> numbers(context_.steps());
  for (int step = 0; step < context_.steps(); ++step) {
    numbers[step] = DistanceAt(own, control, step);
  }
  return numbers;
}

// For a signal on a log scale, rounding grows as the ratio to control's value; for others, as the
// difference. A distance that was reached once stays possible: two runs that came apart may cross
// again by chance.
std::vector<Interval> Evaluator::RoundingNumbers(const Node& signal, const Scope& scope) const {
  const SignalInfo* info = context_.target().FindSignal(signal.name);
  const bool is_relative = info != nullptr && info->scale == Scale::kLog;
  const Samples control = context_.TrueControlSamplesOf(signal, scope);
  const std::vector<Samples> draws = context_.RoundingSamplesOf(signal, scope);
  std::vector<Interval> numbers(context_.steps());
  double reached = 0;
  for (int step = 0; step < context_.steps(); ++step) {
    const double size = std::abs(control.Raw(step));
    for (const Samples& draw : draws) {
      const double apart = std::abs(draw.Raw(step) - control.Raw(step));
      reached = std::max(reached, is_relative && size > 0 ? apart / size : apart);  // no NaN
    }
    const double least = kResolution * size;
    const double envelope = std::max({is_relative ? reached * size : reached, least, kLeast});
    numbers[step] = draws.empty() ? kAll : Point(std::isnan(size) ? size : envelope);
  }
  return numbers;
}

// What is not known of one seed may be anything, and so may the spread.
Interval Evaluator::SeedSpread(const Node& expression) const {
  const auto number_in = [&](const Runs& runs) {
    const Evaluator evaluator(runs, context_.target());
    const Interval number = evaluator.Numbers(expression, {}, /*at_steps=*/false).front();
    return IsPoint(number) && std::isfinite(number.lo) ? number.lo : std::nan("");
  };
  std::vector<double> own, control;
  for (const Runs& seed : context_.seeds()) {
    const auto of_control = seed.arms.find(seed.control);
    if (seed.self == nullptr || of_control == seed.arms.end()) return kAll;
    own.push_back(number_in(seed));
    Runs healthy = seed;
    healthy.self = of_control->second;
    control.push_back(number_in(healthy));
    if (std::isnan(own.back()) || std::isnan(control.back())) return kAll;
  }
  const auto ratio = statistics::RatioOfSpreads(own, control, kSeedConfidence);
  return ratio ? Interval{ratio->lo, ratio->hi} : kAll;
}

}  // namespace trainwreck::formula
