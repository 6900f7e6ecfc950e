#include "harness/history/rank_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace trainwreck {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

using Sample = std::vector<double>;

// Counts the ways to relabel the pooled sample whose rank sum is at least as far from its mean.
double PByEnumeration(const Sample& a, const Sample& b) {
  Sample pooled = a;
  pooled.insert(pooled.end(), b.begin(), b.end());
  auto rank = [&](double value) {
    double below = 0, equal = 0;
    for (double other : pooled) {
      below += other < value;
      equal += other == value;
    }
    return below + (equal + 1) / 2;
  };
  const auto n = static_cast<unsigned>(pooled.size());
  double mean = 0, seen = 0;
  for (double value : pooled) mean += rank(value) * static_cast<double>(a.size()) / n;
  for (double value : a) seen += rank(value);
  double all = 0, as_far = 0;
  for (unsigned mask = 0; mask < (1U << n); ++mask) {
    if (static_cast<std::size_t>(__builtin_popcount(mask)) != a.size()) continue;
    double sum = 0;
    for (unsigned i = 0; i < n; ++i) {
      if ((mask >> i & 1U) != 0) sum += rank(pooled[i]);
    }
    all += 1;
    as_far += std::abs(sum - mean) >= std::abs(seen - mean) - 1e-9;
  }
  return as_far / all;
}

TEST(MannWhitney, HasTheTextbookValues) {
  EXPECT_NEAR(MannWhitney({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}).p, 2.0 / 252, 1e-12);
  EXPECT_EQ(MannWhitney({1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}).superiority, 1);
  EXPECT_EQ(MannWhitney({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}).superiority, 0);
  EXPECT_NEAR(SmallestP(5, 5), 2.0 / 252, 1e-12);
  EXPECT_NEAR(SmallestP(3, 4), 2.0 / 35, 1e-12);
  // All alike: no order, no evidence.
  EXPECT_EQ(MannWhitney({1, 1, 1}, {1, 1, 1}).p, 1);
  EXPECT_EQ(MannWhitney({1, 1, 1}, {1, 1, 1}).superiority, 0.5);
}

TEST(MannWhitney, CountsAsEnumerationDoesAlsoWithTiesAndInfinities) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    Sample a(2 + random() % 5), b(2 + random() % 5);
    auto draw = [&] { return random() % 8 == 0 ? kInf : static_cast<double>(random() % 6); };
    std::generate(a.begin(), a.end(), draw);
    std::generate(b.begin(), b.end(), draw);
    EXPECT_NEAR(MannWhitney(a, b).p, PByEnumeration(a, b), 1e-9);
    EXPECT_NEAR(MannWhitney(a, b).p, MannWhitney(b, a).p, 1e-12);
    EXPECT_NEAR(MannWhitney(a, b).superiority + MannWhitney(b, a).superiority, 1, 1e-12);
  }
}

TEST(MannWhitney, ApproximationMeetsTheExactValueWhereItTakesOver) {
  std::mt19937 random(2);
  std::normal_distribution<double> noise;
  for (int round = 0; round < 20; ++round) {
    Sample a(30), b(30), more_b;
    for (double& value : a) value = noise(random);
    for (double& value : b) value = noise(random) + 0.5;
    more_b = b;
    more_b.push_back(0.25);  // the 61st value
    EXPECT_NEAR(MannWhitney(a, b).p, MannWhitney(a, more_b).p, 0.06);
  }
}

TEST(Shift, IntervalsOfFiveSeedsAreThoseOfTheTables) {
  const Sample a = {1, 2, 4, 8, 16}, b = {3, 5, 9, 17, 33};
  // 90%: the 5th smallest and 5th largest of the 25 differences (P(U <= 4) = 0.0278).
  Sample differences;
  for (double x : a) {
    for (double y : b) differences.push_back(y - x);
  }
  std::sort(differences.begin(), differences.end());
  const auto shift = Shift(a, b, 0.9);
  ASSERT_TRUE(shift);
  EXPECT_EQ(shift->lo, differences[4]);
  EXPECT_EQ(shift->hi, differences[20]);
  EXPECT_EQ(shift->estimate, differences[12]);
  // Five pairs: from the smallest to the largest difference; four are too few for 90%.
  const auto paired = PairedShift({2, 3, 5, 9, 17}, 0.9);
  ASSERT_TRUE(paired);
  EXPECT_EQ(paired->lo, 2);
  EXPECT_EQ(paired->hi, 17);
  EXPECT_FALSE(PairedShift({2, 3, 5, 9}, 0.9));
  EXPECT_FALSE(Shift({1, kInf}, {1, 2}, 0.5));
  EXPECT_FALSE(Shift({1, 2}, {3, 4}, 0.9));
}

// How often an interval holds the true shift, at every size between exact and approximate.
TEST(Shift, IntervalsHoldTheTruthAsOftenAsTheyClaim) {
  std::mt19937 random(3);
  std::exponential_distribution<double> noise;  // skewed: nothing is assumed about the shape
  constexpr int kRounds = 600;
  constexpr double kTrue = 0.7;
  for (int size : {5, 12, 40}) {
    int unpaired = 0, paired = 0;
    for (int round = 0; round < kRounds; ++round) {
      Sample a, b, differences;
      for (int i = 0; i < size; ++i) {
        a.push_back(noise(random));
        b.push_back(noise(random) + kTrue);
        differences.push_back(b.back() - a.back());
      }
      const auto one = Shift(a, b, 0.9);
      const auto other = PairedShift(differences, 0.9);
      ASSERT_TRUE(one && other);
      unpaired += one->lo <= kTrue && kTrue <= one->hi;
      paired += other->lo <= kTrue && kTrue <= other->hi;
    }
    // 0.9 less four standard errors.
    EXPECT_GE(unpaired, 0.9 * kRounds - 4 * std::sqrt(0.09 * kRounds)) << size;
    EXPECT_GE(paired, 0.9 * kRounds - 4 * std::sqrt(0.09 * kRounds)) << size;
    if (size >= 12) {  // and not much more often: they are no wider than they need to be
      EXPECT_LE(unpaired, 0.965 * kRounds) << size;
      EXPECT_LE(paired, 0.965 * kRounds) << size;
    }
  }
}

}  // namespace
}  // namespace trainwreck
