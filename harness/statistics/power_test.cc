#include "harness/statistics/power.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace trainwreck::statistics {
namespace {

// R: power.t.test(delta = 1, sd = 1, power = 0.8)$n is 16.71, and power.t.test(n = 17, ...)$power
// 0.8070.
TEST(Power, IsThatOfStudentsTestWhereBothSpreadAlike) {
  EXPECT_EQ(SeedsToTell(1, {1, 1}, {}), 17);
  EXPECT_NEAR(PowerOfWelch(1, {1, 1}, 17, 0.05), 0.8070, 5e-4);
  EXPECT_EQ(SeedsToTell(-1, {1, 1}, {}), 17);
  EXPECT_NEAR(PowerOfWelch(0, {1, 1}, 17, 0.05), 0.05, 1e-12);
}

TEST(Power, OfALargeDifferenceNeedsTwoSeedsAndOfNoneMoreThanTheLimit) {
  EXPECT_EQ(SeedsToTell(1, {0, 0}, {}), 2);
  EXPECT_EQ(SeedsToTell(100, {1, 1}, {}), 2);
  EXPECT_EQ(SeedsToTell(0, {1, 1}, {}), std::nullopt);
  EXPECT_EQ(SeedsToTell(1e-6, {1, 1}, {}, 1000), std::nullopt);
}

TEST(Power, FindsTheLeastDifferenceThatTheseSeedsTell) {
  const double least = LeastDifference(17, {1, 3}, {});
  EXPECT_NEAR(PowerOfWelch(least, {1, 3}, 17, 0.05), 0.8, 1e-6);
  EXPECT_EQ(LeastDifference(5, {0, 0}, {}), 0);
}

// An interval without 0 and a p-value below 0.05 say the same.
TEST(Power, WelchsTestAgreesWithItsInterval) {
  const auto welch = WelchTest({1, 2, 3, 4}, {3, 5, 8, 9, 12}, 0.95);
  ASSERT_TRUE(welch);
  EXPECT_DOUBLE_EQ(welch->value, 4.9);
  EXPECT_LT(welch->p, 0.05);
  EXPECT_GT(welch->lo, 0);
  EXPECT_FALSE(WelchTest({1}, {3, 5}, 0.95));
  EXPECT_EQ(WelchTest({1, 1}, {1, 1}, 0.95)->p, 1);
}

// What the test does on drawn samples: with the number of seeds that it asked for, it finds the
// difference as often as promised.
TEST(Power, IsWhatDrawnSamplesShow) {
  const Noise noise{1, 2};
  const int seeds = SeedsToTell(1.5, noise, {}).value();
  std::mt19937_64 random(3);
  std::normal_distribution<double> draw;
  int found = 0, draws = 4000;
  for (int i = 0; i < draws; ++i) {
    std::vector<double> a, b;
    for (int k = 0; k < seeds; ++k) {
      a.push_back(noise.a * draw(random));
      b.push_back(1.5 + noise.b * draw(random));
    }
    found += WelchTest(a, b, 0.95)->p < 0.05;
  }
  EXPECT_NEAR(found / static_cast<double>(draws), 0.8, 0.03);
}

}  // namespace
}  // namespace trainwreck::statistics
