#include "harness/statistics/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace trainwreck::statistics {
namespace trend_test {

std::vector<double> Steps(int count) {
  std::vector<double> steps;
  for (int i = 0; i < count; ++i) steps.push_back(i);
  return steps;
}

TEST(Median, IsTheMiddleOrTheMeanOfTwo) {
  EXPECT_DOUBLE_EQ(Median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(Median({4, 1, 2, 3}), 2.5);
}

TEST(Slope, OfALineIsExactAndASpikeDoesNotMoveIt) {
  std::vector<double> line;
  for (int i = 0; i < 20; ++i) line.push_back(100 + 3 * i);
  const auto exact = Slope(Steps(20), line, 0.95);
  ASSERT_TRUE(exact);
  EXPECT_DOUBLE_EQ(exact->value, 3);
  EXPECT_DOUBLE_EQ(exact->lo, 3);
  EXPECT_DOUBLE_EQ(exact->hi, 3);
  line[7] = 1e6;
  EXPECT_DOUBLE_EQ(Slope(Steps(20), line, 0.95)->value, 3);
}

// Ten slopes, by hand. With five values the interval of 0.95 is from the first to the last.
TEST(Slope, OfFewValuesTakesTheRanksThatSenGives) {
  const std::vector<double> y = {1.26, 1.27, 1.12, 1.16, 1.03};
  const auto slope = Slope({1, 2, 3, 4, 5}, y, 0.95);
  ASSERT_TRUE(slope);
  // Sorted slopes: -0.15 -0.13 -0.08 -0.07 -0.0575 -0.055 -0.045 -0.0333 0.01 0.04.
  EXPECT_NEAR(slope->value, -0.05625, 1e-12);
  EXPECT_NEAR(slope->lo, -0.15, 1e-12);
  EXPECT_NEAR(slope->hi, 0.04, 1e-12);
}

TEST(Slope, TheIntervalHoldsTheTruthAboutAsOftenAsItSays) {
  std::mt19937 generator(1);
  std::normal_distribution<double> noise;
  int held = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> y;
    for (int i = 0; i < 30; ++i) y.push_back(0.1 * i + noise(generator));
    const auto slope = Slope(Steps(30), y, 0.95);
    held += slope->lo <= 0.1 && 0.1 <= slope->hi;
  }
  EXPECT_GE(held, 0.92 * kTrials);
  EXPECT_LE(held, 0.98 * kTrials);
}

TEST(Slope, OfManyValuesIsThatOfSome) {
  std::vector<double> line;
  for (int i = 0; i < 100000; ++i) line.push_back(-2.0 * i);
  EXPECT_DOUBLE_EQ(Slope(Steps(100000), line, 0.95)->value, -2);
}

TEST(Slope, OfTooFewOrInfiniteValuesIsNotKnown) {
  EXPECT_FALSE(Slope({0, 1, 2}, {1, 2, 3}, 0.95));
  EXPECT_FALSE(Slope({0, 1, 2, 3}, {1, 2, NAN, 3}, 0.95));
}

}  // namespace trend_test
}  // namespace trainwreck::statistics
