#include "harness/history/shift.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "harness/history/permutation.h"

namespace trainwreck {
namespace {

std::vector<double> ValuesOf(const BySeed& by_seed) {
  std::vector<double> values;
  for (const auto& [seed, value] : by_seed) values.push_back(value);
  return values;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  const double low = values[(n - 1) / 2], high = values[n / 2];
  return low == high ? low : (low + high) / 2;  // equal infinities have no sum to halve
}

// The deviation of the finite values: an event that never came has no distance from one that did.
double Deviation(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isinf(value); });
  const auto n = static_cast<double>(values.size());
  if (n < 2) return 0;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1));
}

bool HasSameSeeds(const BySeed& a, const BySeed& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

bool IsEqualWhereBothAre(const BySeed& a, const BySeed& b) {
  bool any = false;
  for (const auto& [seed, value] : a) {
    auto found = b.find(seed);
    if (found == b.end()) continue;
    if (found->second != value) return false;
    any = true;
  }
  return any;
}

std::optional<ShiftInterval> ShiftOf(const BySeed& a, const BySeed& b, double confidence) {
  if (!HasSameSeeds(a, b)) return Shift(ValuesOf(a), ValuesOf(b), confidence);
  std::vector<double> differences;
  for (const auto& [seed, value] : b) {
    // An event that comes on neither side has not moved.
    differences.push_back(value == a.at(seed) ? 0 : value - a.at(seed));
  }
  return PairedShift(differences, confidence);
}

// Two one-sided tests: an interval of confidence 1 - 2 * (1 - confidence) within the bounds.
double EquivalenceConfidence(const ShiftOptions& options) { return 2 * options.confidence - 1; }

bool IsIrrelevant(const ShiftResult& result, const ShiftOptions& options) {
  // A margin is a distance from flipping: a hundredth of it brings nothing nearer to that, however
  // small the noise is.
  const double bound = std::max(options.relevant_shift * result.noise,
                                options.relevant_share * std::abs(result.median_a));
  return result.shift && -bound <= result.shift->lo && result.shift->hi <= bound;
}

ShiftResult Measure(const BySeed& a, const BySeed& b, const ShiftOptions& options) {
  ShiftResult result;
  const std::vector<double> values_a = ValuesOf(a), values_b = ValuesOf(b);
  result.identical = IsEqualWhereBothAre(a, b);
  result.median_a = Median(values_a);
  result.median_b = Median(values_b);
  result.noise = Deviation(values_a);
  if (result.identical) return result;
  result.test = MannWhitney(values_a, values_b);
  result.shift = ShiftOf(a, b, EquivalenceConfidence(options));
  return result;
}

Answer Decide(const ShiftResult& result, const ShiftOptions& options) {
  if (result.identical || IsIrrelevant(result, options)) return Answer::kSame;
  return result.adjusted_p <= 1 - options.confidence ? Answer::kDifferent : Answer::kUnknown;
}

// Draws from the normal distribution that are the same on every machine.
class Noise {
 public:
  double Draw() {
    const double uniform =
        (static_cast<double>(engine_() >> 11) + 0.5) / 9007199254740992.0;  // 2^53
    return quantile(boost::math::normal(), uniform);
  }

 private:
  std::mt19937_64 engine_{20240229};
};

struct Power {
  double different = 0;  // when there is a shift that matters
  double same = 0;       // when there is none
};

Power SimulatePower(int seeds, double level, bool paired, const ShiftOptions& options) {
  constexpr int kTrials = 400;
  Noise noise;
  int different = 0, same = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    BySeed a, b, shifted;
    for (int seed = 0; seed < seeds; ++seed) {
      a[seed] = noise.Draw();
      const double value = noise.Draw();
      b[paired ? seed : seed + seeds] = value;
      shifted[paired ? seed : seed + seeds] = value + options.relevant_shift;
    }
    const ShiftResult with_shift = Measure(a, shifted, options);
    different +=
        StudentP(ValuesOf(a), ValuesOf(shifted)) <= level && !IsIrrelevant(with_shift, options);
    same += IsIrrelevant(Measure(a, b, options), options);
  }
  return {static_cast<double>(different) / kTrials, static_cast<double>(same) / kTrials};
}

}  // namespace

const char* ToString(Answer answer) {
  switch (answer) {
    case Answer::kSame:
      return "same";
    case Answer::kDifferent:
      return "different";
    case Answer::kUnknown:
      return "unknown";
  }
  return "?";
}

int NeededSeeds(double level, bool paired, const ShiftOptions& options) {
  using Question = std::tuple<double, bool, double, double, double>;
  static std::map<Question, int> known;  // this program has one thread
  int& answer = known[{level, paired, options.confidence, options.relevant_shift, options.power}];
  if (answer > 0) return answer;
  auto is_enough = [&](int seeds) {
    if (SmallestP(seeds, seeds) > 1 - options.confidence) return false;
    const Power power = SimulatePower(seeds, level, paired, options);
    return power.different >= options.power && power.same >= options.power;
  };
  int too_few = 1, enough = 2;
  while (enough < kMaxNeededSeeds && !is_enough(enough)) {
    too_few = enough;
    enough = std::min(2 * enough, kMaxNeededSeeds);
  }
  while (enough - too_few > 1) {
    const int middle = (too_few + enough) / 2;
    (is_enough(middle) ? enough : too_few) = middle;
  }
  return answer = enough;
}

std::vector<ShiftResult> CompareShifts(const std::vector<std::pair<BySeed, BySeed>>& sides,
                                       const ShiftOptions& options) {
  std::vector<ShiftResult> results;
  for (const auto& [a, b] : sides) results.push_back(Measure(a, b, options));
  std::vector<ShiftResult*> tested;
  std::vector<Samples> samples;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (results[i].identical) continue;
    tested.push_back(&results[i]);
    samples.emplace_back(ValuesOf(sides[i].first), ValuesOf(sides[i].second));
  }
  const std::vector<double> p = FamilywiseP(samples, 1 - options.confidence);
  for (std::size_t i = 0; i < tested.size(); ++i) tested[i]->adjusted_p = p[i];
  // For the plan alone: what normal noise needs where each margin has its share of the level.
  const double level = (1 - options.confidence) / std::max<double>(1, tested.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].answer = Decide(results[i], options);
    if (results[i].answer != Answer::kUnknown) continue;
    const auto& [a, b] = sides[i];
    const int needed = NeededSeeds(level, HasSameSeeds(a, b), options);
    const auto seeds = static_cast<int>(std::min(a.size(), b.size()));
    // Where the plan's number did not do, the shift is near the border: as many again.
    results[i].more_seeds = needed > seeds ? needed - seeds : seeds;
  }
  return results;
}

std::optional<RatioInterval> PairedRatio(const BySeed& a, const BySeed& b, double confidence) {
  std::vector<double> logs;
  for (const auto& [seed, value] : b) {
    auto found = a.find(seed);
    if (found == a.end() || !(found->second > 0) || !(value > 0)) continue;
    logs.push_back(std::log(value / found->second));
  }
  if (logs.empty()) return std::nullopt;
  const auto n = static_cast<double>(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / n;
  RatioInterval interval{.ratio = std::exp(mean),
                         .lo = 0,
                         .hi = std::numeric_limits<double>::infinity(),
                         .pairs = static_cast<int>(logs.size())};
  if (logs.size() > 1) {
    const boost::math::students_t student(n - 1);
    const double reach =
        quantile(complement(student, (1 - confidence) / 2)) * Deviation(logs) / std::sqrt(n);
    interval.lo = std::exp(mean - reach);
    interval.hi = std::exp(mean + reach);
  }
  return interval;
}

}  // namespace trainwreck
