// Whether the margins of one check moved between two sides, beyond the noise of seeds: "same",
// "different" or "unknown", the last with the number of seeds that would tell.
//
//   different  a permutation test of all margins together says so (permutation.h), and the shift is
//              not shown to be irrelevant
//   same       every seed that both sides have has an equal value, or an interval for the shift
//              (from pairs, where both sides have the same seeds) lies within `relevant_shift`
//              standard deviations of A
//   unknown    else
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/rank_statistics.h"

namespace trainwreck {

enum class Answer { kSame, kDifferent, kUnknown };
const char* ToString(Answer answer);

struct ShiftOptions {
  double confidence = 0.95;      // the chance of any false "different" is at most 1 - this
  double relevant_shift = 2;     // in standard deviations of A's seeds; less does not matter
  double relevant_share = 0.01;  // nor does a shift by less than this share of A's median margin
  double power = 0.8;            // the power that the suggested number of seeds gives
};

using BySeed = std::map<int, double>;

struct ShiftResult {
  Answer answer = Answer::kUnknown;
  bool identical = false;  // the common seeds have the same values
  RankTest test;
  double adjusted_p = 1;  // of the permutation test, for all margins together
  double noise = 0;       // standard deviation of A over its seeds
  double median_a = 0;
  double median_b = 0;
  std::optional<ShiftInterval> shift;  // empty: too few seeds, or infinite values
  int more_seeds = 0;                  // of each side, when unknown
};

// Tests all margins of a comparison together. Margins that are equal value by value do not count as
// tests: they cannot raise a false alarm. Each side of each pair must have at least one value, and
// no NaN.
std::vector<ShiftResult> CompareShifts(const std::vector<std::pair<BySeed, BySeed>>& sides,
                                       const ShiftOptions& options);

// The seeds that each side needs, so that a shift of `relevant_shift` is called different at this
// level, and no shift is called same, each with probability `options.power`. Found by simulating
// this decision with independent normal noise. kMaxNeededSeeds: so many or more.
inline constexpr int kMaxNeededSeeds = 120;
int NeededSeeds(double level, bool paired, const ShiftOptions& options);

// The ratio of B to A by pairs, as a geometric mean with a Student t interval.
struct RatioInterval {
  double ratio = 1;
  double lo = 0;  // 0 and inf with a single pair
  double hi = 0;
  int pairs = 0;
};
std::optional<RatioInterval> PairedRatio(const BySeed& a, const BySeed& b, double confidence);

}  // namespace trainwreck
