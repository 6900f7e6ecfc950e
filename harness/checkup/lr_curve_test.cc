#include "harness/checkup/lr_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trainwreck {
namespace lr_curve_test {

// Rates 1e-4, 1e-3, ...: too low, too low, better, good, best, good, bad, diverged.
std::vector<RatePoint> Curve() {
  std::vector<RatePoint> points;
  double rate = 1e-4;
  for (double end :
       {2.3, 2.2, 1.2, 0.5, 0.4, 0.45, 1.2, 2.5, std::numeric_limits<double>::infinity()}) {
    points.push_back({rate, 2.3, end, std::isinf(end)});
    rate *= 10;
  }
  return points;
}

TEST(LrCurve, FindsPlateauStableRateAndSteepestDescent) {
  const LrRange range = FindRange(Curve());
  EXPECT_EQ(range.best, 4);
  EXPECT_EQ(range.plateau_from, 3);  // 2.3 - 0.5 = 1.8 of 1.9
  EXPECT_EQ(range.plateau_to, 5);
  EXPECT_EQ(range.largest_stable, 6);  // 1.1 of 1.9; 2.5 has lost it all
  EXPECT_EQ(range.steepest, 2);        // 2.2 to 1.2
  EXPECT_NEAR(range.suggested, 1, 1e-9);
}

TEST(LrCurve, JudgesARate) {
  const std::vector<RatePoint> points = Curve();
  const LrRange range = FindRange(points);
  EXPECT_EQ(Judge(points, range, 1e-3), RateVerdict::kTooLow);
  EXPECT_EQ(Judge(points, range, 0.1), RateVerdict::kGood);
  EXPECT_EQ(Judge(points, range, 3), RateVerdict::kGood);
  EXPECT_EQ(Judge(points, range, 1000), RateVerdict::kTooHigh);
  EXPECT_EQ(Judge(points, range, 10000), RateVerdict::kDiverges);
  EXPECT_EQ(Judge(points, range, 1e6), RateVerdict::kDiverges) << "beyond the grid";
}

TEST(LrCurve, SaysNothingWhereNoRateLearns) {
  std::vector<RatePoint> points = Curve();
  for (RatePoint& point : points) point.end = std::max(point.end, 2.2);
  const LrRange range = FindRange(points);
  EXPECT_EQ(range.best, -1);
  EXPECT_FALSE(Judge(points, range, 0.1).has_value());
}

TEST(LrCurve, ARateThatDivergesInOneSeedIsNotStable) {
  std::vector<RatePoint> points = Curve();
  points[5].diverged = true;
  const LrRange range = FindRange(points);
  EXPECT_EQ(range.plateau_to, 4);
  EXPECT_EQ(range.largest_stable, 4);
  EXPECT_EQ(Judge(points, range, points[5].rate), RateVerdict::kDiverges);
}

TEST(LrCurve, AnUnluckyDivergenceBelowTheBestEndsThePlateau) {
  std::vector<RatePoint> points = Curve();
  points[3].diverged = true;
  const LrRange range = FindRange(points);
  EXPECT_EQ(range.plateau_from, 4);
  EXPECT_EQ(range.steepest, 2);
}

// The range may take in either end of the grid.
TEST(LrCurve, ARangeReachesTheEndsOfTheGrid) {
  const std::vector<RatePoint> points = {
      {0.1, 2, 0.4, false}, {1, 2, 0.3, false}, {10, 2, 0.35, false}, {100, 2, 0.4, false}};
  const LrRange range = FindRange(points);
  EXPECT_EQ(range.plateau_from, 0);
  EXPECT_EQ(range.plateau_to, 3);
  EXPECT_EQ(range.largest_stable, 3);
}

TEST(LrCurve, OfEqualRatesTheLowestIsBest) {
  EXPECT_EQ(FindRange({{0.1, 2, 1, false}, {1, 2, 0.5, false}, {10, 2, 0.5, false}}).best, 1);
}

// Seeds that came through may leave a low loss beside one that did not.
TEST(LrCurve, ARateThatDivergedIsNeverBest) {
  EXPECT_EQ(FindRange({{0.1, 2, 1, false}, {1, 2, 0.1, true}}).best, 0);
}

TEST(LrCurve, SteepestDescentLiesBelowTheBestRateAndBesideNoDivergence) {
  // From 9 to 5 after the best, and from a diverged 9 to 1 before it.
  const LrRange range = FindRange({{1, 9, 8, false},
                                   {2, 9, 7, false},
                                   {3, 9, 9, true},
                                   {4, 9, 1, false},
                                   {5, 9, 9, false},
                                   {6, 9, 5, false}});
  EXPECT_EQ(range.best, 3);
  EXPECT_EQ(range.steepest, 1);
}

// Computed rates miss the grid by a rounding error.
TEST(LrCurve, ARateOfTheGridIsInsideHoweverItWasComputed) {
  const std::vector<RatePoint> points = Curve();
  const LrRange range = FindRange(points);
  EXPECT_EQ(Judge(points, range, points[range.plateau_from].rate * (1 - 1e-12)),
            RateVerdict::kGood);
  EXPECT_EQ(Judge(points, range, points[range.plateau_to].rate * (1 + 1e-12)), RateVerdict::kGood);
}

}  // namespace lr_curve_test
}  // namespace trainwreck
