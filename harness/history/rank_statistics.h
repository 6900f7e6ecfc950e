// Rank statistics of two small samples: a test for a difference, an effect size, and an interval
// for the shift. They assume nothing about the shape of the noise, and infinite values (an event
// that never came) have a rank like any other. They are exact for small samples, ties included.
// This matters because five seeds against five is the usual case.
//
// H. B. Mann and D. R. Whitney (1947); J. L. Hodges and E. L. Lehmann (1963); F. Wilcoxon (1945).
#pragma once

#include <optional>
#include <vector>

namespace trainwreck {

struct RankTest {
  double p = 1;  // two-sided
  double superiority =
      0.5;  // P(b > a) + P(b = a) / 2: 0.5 is no difference, 1: all of b is above a
};

// The Mann-Whitney test. Neither sample may be empty or hold a NaN.
RankTest MannWhitney(const std::vector<double>& a, const std::vector<double>& b);

// The smallest p-value that samples of these sizes can have: 2 / C(na + nb, na) without ties.
double SmallestP(int a, int b);

struct ShiftInterval {
  double estimate = 0;  // Hodges-Lehmann
  double lo = 0;
  double hi = 0;
};

// How far b lies above a, with at least this confidence. Empty when the samples are too small for
// it, or a value is infinite.
std::optional<ShiftInterval> Shift(const std::vector<double>& a, const std::vector<double>& b,
                                   double confidence);

// The shift of pairs, from their differences b - a: what both have in common cancels out.
std::optional<ShiftInterval> PairedShift(const std::vector<double>& differences, double confidence);

}  // namespace trainwreck
