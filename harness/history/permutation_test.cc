#include "harness/history/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace trainwreck {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLevel = 0.05;

std::vector<double> Draw(std::mt19937& random, int seeds, double shift = 0, double noise = 1) {
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (int seed = 0; seed < seeds; ++seed) values.push_back(shift + noise * normal(random));
  return values;
}

std::vector<Samples> NothingMoved(std::mt19937& random, int margins, int seeds) {
  std::vector<Samples> samples;
  for (int i = 0; i < margins; ++i) {
    samples.emplace_back(Draw(random, seeds), Draw(random, seeds));
    if (i % 3 == 0) continue;
    for (auto* side : {&samples.back().first, &samples.back().second}) {
      for (double& value : *side) {
        // Heavy tails, and counts of which some never come.
        value = i % 3 == 1 ? value * value * value : std::floor(value);
        if (i % 3 == 2 && value >= 1) value = kInf;
      }
    }
  }
  return samples;
}

TEST(FamilywiseP, OfOneMarginIsThatOfItsDeals) {
  EXPECT_DOUBLE_EQ(FamilywiseP({{{1, 2, 3, 4, 5}, {11, 12, 13, 14, 15}}}, kLevel)[0], 2.0 / 252);
  EXPECT_DOUBLE_EQ(FamilywiseP({{{1, 2, 3, 4}, {11, 12, 13, 14}}}, kLevel)[0], 2.0 / 70);
  EXPECT_DOUBLE_EQ(FamilywiseP({{{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}}, kLevel)[0], 1);
  // Three seeds a side can be dealt out in 20 ways: whatever they show, they cannot tell.
  EXPECT_EQ(FamilywiseP({{{1, 2, 3}, {1e9, 2e9, 3e9}}}, kLevel)[0], 1);
}

TEST(FamilywiseP, FindsAShiftOfOctavesAmongHundredsOfTouchedMarginsWithFiveSeeds) {
  std::mt19937 random(1);
  std::vector<Samples> margins = NothingMoved(random, 600, 5);
  margins[200] = {Draw(random, 5, 1, 1e-8), Draw(random, 5, 3, 1e-8)};
  margins[300] = {Draw(random, 5, 1), {-kInf, -kInf, -kInf, -kInf, -kInf}};
  margins[400] = {Draw(random, 5, 1), Draw(random, 5, 200)};
  const std::vector<double> p = FamilywiseP(margins, kLevel);
  for (int moved : {200, 300, 400}) EXPECT_LE(p[moved], kLevel) << moved;
  margins[200] = {Draw(random, 5, 1), Draw(random, 5, 1)};
  EXPECT_GT(FamilywiseP(margins, kLevel)[200], kLevel);
}

// The chance of any false alarm in a family, whatever the shape of the noise, with few seeds and
// many, and where a part of the margins moved.
TEST(FamilywiseP, FalseAlarmsStayWithinTheirBound) {
  std::mt19937 random(2);
  constexpr int kRounds = 300, kMargins = 24;
  const double limit = kLevel * kRounds + 3 * std::sqrt(kLevel * (1 - kLevel) * kRounds);
  for (int seeds : {4, 5, 8}) {
    for (int moved : {0, 6}) {
      int alarms = 0, not_corrected = 0;
      for (int round = 0; round < kRounds; ++round) {
        std::vector<Samples> margins = NothingMoved(random, kMargins, seeds);
        for (int i = 0; i < moved; ++i) {
          for (double& value : margins[i].second) value += 1000;
        }
        const std::vector<double> p = FamilywiseP(margins, kLevel);
        alarms += *std::min_element(p.begin() + moved, p.end()) <= kLevel;
        double smallest = 1;
        for (int i = moved; i < kMargins; ++i) {
          smallest = std::min(smallest, FamilywiseP({margins[i]}, kLevel)[0]);
          if (seeds > 5) break;  // a sample of deals: one margin is enough to show the way
        }
        not_corrected += smallest <= kLevel;
      }
      EXPECT_LE(alarms, limit) << seeds << " " << moved;
      // Each margin by itself breaks the bound: the test above can fail.
      if (seeds <= 5) {
        EXPECT_GT(not_corrected, 3 * limit) << seeds << " " << moved;
      }
    }
  }
}

TEST(FamilywiseP, GroupsOfOtherSizesAreCountedWhereTheyCanTell) {
  const Samples five = {{1, 2, 3, 4, 5}, {11, 12, 13, 14, 15}};
  const Samples four = {{1, 2, 3, 4}, {11, 12, 13, 14}}, three = {{1, 2, 3}, {11, 12, 13}};
  const std::vector<double> p = FamilywiseP({five, four, three}, kLevel);
  EXPECT_DOUBLE_EQ(p[0], 2 * 2.0 / 252);
  EXPECT_DOUBLE_EQ(p[1], 2 * 2.0 / 70);
  EXPECT_EQ(p[2], 1);
}

TEST(StudentP, IsTheTextbooksAndKeepsSmallNoise) {
  // Student (1908), the two drugs taken as unpaired: t = 1.8608, 18 degrees of freedom.
  const std::vector<double> a = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const std::vector<double> b = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  EXPECT_NEAR(StudentP(a, b), 0.0792, 1e-4);
  EXPECT_LT(StudentP({1, 1 + 1e-8, 1 - 1e-8}, {3, 3 + 1e-8, 3 - 1e-8}), 1e-12);
  EXPECT_EQ(StudentP({1}, {2}), 1);
}

}  // namespace
}  // namespace trainwreck
