#include "harness/checkup/lr_curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trainwreck {
namespace {

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

}  // namespace
}  // namespace trainwreck
