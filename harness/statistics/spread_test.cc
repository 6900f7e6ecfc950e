#include "harness/statistics/spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace trainwreck::statistics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> Normal(std::mt19937_64& random, int n, double deviation) {
  std::normal_distribution<double> draw(0, deviation);
  std::vector<double> values(n);
  for (double& value : values) value = draw(random);
  return values;
}

// R: t.test(c(1,2,3,4))$conf.int, and sqrt(3 * 5/3 / qchisq(c(.975, .025), 3)).
TEST(Spread, HasTheIntervalsOfStudentAndOfChiSquared) {
  const auto mean = Mean({1, 2, 3, 4}, 0.95);
  ASSERT_TRUE(mean);
  EXPECT_DOUBLE_EQ(mean->value, 2.5);
  EXPECT_NEAR(mean->lo, 0.4457397, 1e-6);
  const auto spread = Spread({1, 2, 3, 4}, 0.95);
  ASSERT_TRUE(spread);
  EXPECT_NEAR(spread->value, std::sqrt(5.0 / 3), 1e-12);
  EXPECT_NEAR(spread->lo, 0.7313405, 1e-5);
  EXPECT_NEAR(spread->hi, 4.813528, 1e-5);
  EXPECT_FALSE(Spread({1}, 0.95));
}

TEST(RatioOfSpreads, HoldsTheTrueRatioAsOftenAsItSays) {
  std::mt19937_64 random(1);
  int held = 0, draws = 2000;
  for (int i = 0; i < draws; ++i) {
    const auto ratio = RatioOfSpreads(Normal(random, 10, 3), Normal(random, 10, 1), 0.95);
    ASSERT_TRUE(ratio);
    held += ratio->lo <= 3 && 3 <= ratio->hi;
  }
  EXPECT_NEAR(held / static_cast<double>(draws), 0.95, 0.025);
}

// What two recipes share by seed cancels out: the F distribution's interval would be as wide as
// ever.
TEST(RatioOfSpreads, ReadsPairsByTheirSeed) {
  std::mt19937_64 random(2);
  const std::vector<double> shared = Normal(random, 10, 1);
  std::vector<double> a, b;
  for (const double value : shared) {
    b.push_back(value);
    a.push_back(2 * value + 0.001 * static_cast<double>(a.size()));
  }
  const auto ratio = RatioOfSpreads(a, b, 0.95);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->lo, 2, 0.02);
  EXPECT_NEAR(ratio->hi, 2, 0.02);
}

TEST(RatioOfSpreads, OfEqualValuesIsExact) {
  const std::vector<double> equal = {0.1, 0.1, 0.1}, others = {1, 2, 4};
  EXPECT_EQ(RatioOfSpreads(others, equal, 0.95)->lo, kInfinity);
  EXPECT_EQ(RatioOfSpreads(equal, others, 0.95)->hi, 0);
  EXPECT_EQ(RatioOfSpreads(equal, equal, 0.95)->hi, 1);
  EXPECT_EQ(RatioOfSpreads(others, others, 0.95)->lo, 1);
}

// Without the seed that lies apart there would be no spread.
TEST(RatioOfSpreads, IsUnknownWhereItRestsOnOneSeed) {
  const auto ratio = RatioOfSpreads({1, 1, 1, 9}, {1, 2, 3, 4}, 0.95);
  ASSERT_TRUE(ratio);
  EXPECT_EQ(ratio->lo, 0);
  EXPECT_EQ(ratio->hi, kInfinity);
}

TEST(RatioOfSpreads, NeedsThreePairsOfFiniteValues) {
  EXPECT_FALSE(RatioOfSpreads({1, 2}, {1, 3}, 0.95));
  EXPECT_FALSE(RatioOfSpreads({1, 2, 3}, {1, 3}, 0.95));
  EXPECT_FALSE(RatioOfSpreads({1, 2, std::nan("")}, {1, 3, 4}, 0.95));
}

}  // namespace
}  // namespace trainwreck::statistics
