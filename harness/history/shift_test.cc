// What the three answers promise, tried on synthetic margins whose truth is known.
#include "harness/history/shift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "harness/history/permutation.h"

namespace trainwreck {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

BySeed Draw(std::mt19937& random, int seeds, double shift = 0, int first_seed = 0) {
  std::normal_distribution<double> noise(shift, 1);
  BySeed values;
  for (int seed = 0; seed < seeds; ++seed) values[first_seed + seed] = noise(random);
  return values;
}

ShiftResult CompareOne(const BySeed& a, const BySeed& b, const ShiftOptions& options = {}) {
  return CompareShifts({{a, b}}, options).front();
}

// Everything that a run on one machine gives twice is the same, however few seeds there are.
TEST(CompareShifts, EqualValuesAreTheSameWithoutATest) {
  const ShiftResult result = CompareOne({{0, 1.5}, {1, -kInf}}, {{0, 1.5}, {1, -kInf}});
  EXPECT_EQ(result.answer, Answer::kSame);
  EXPECT_TRUE(result.identical);
  EXPECT_NE(CompareOne({{0, 1.5}, {1, 2}}, {{0, 1.5}, {1, 2.0000001}}).answer, Answer::kSame);
}

// Another order of summation moves the 7th digit: five pairs show that this is far below the noise.
TEST(CompareShifts, TinyPairedDifferencesAreTheSame) {
  const BySeed a = {{0, 1.1}, {1, 1.4}, {2, 0.9}, {3, 1.7}, {4, 1.2}};
  BySeed b = a;
  for (auto& [seed, value] : b) value += 1e-6 * (seed - 1);
  EXPECT_EQ(CompareOne(a, b).answer, Answer::kSame);
  // The same values under other seeds are no pairs, and five are then not enough.
  BySeed unpaired;
  for (const auto& [seed, value] : b) unpaired[seed + 100] = value;
  const ShiftResult result = CompareOne(a, unpaired, {.relevant_shift = 0.5});
  EXPECT_EQ(result.answer, Answer::kUnknown);
  EXPECT_GT(result.more_seeds, 5);
}

TEST(CompareShifts, FarMarginsDifferAndTheNumberOfTestsCounts) {
  const BySeed a = {{0, 1.1}, {1, 1.4}, {2, 0.9}, {3, 1.7}, {4, 1.2}};
  BySeed b = a;
  for (auto& [seed, value] : b) value -= 10;
  const ShiftResult alone = CompareOne(a, b);
  EXPECT_EQ(alone.answer, Answer::kDifferent);
  EXPECT_NEAR(alone.adjusted_p, 2.0 / 252, 1e-12);
  EXPECT_EQ(alone.test.superiority, 0);
  EXPECT_NEAR(alone.shift->estimate, -10, 1e-9);
  // Hundreds of others that a commit touched take nothing from it, and are not drawn along.
  BySeed c = a;
  for (auto& [seed, value] : c) value += 0.1 * (seed - 2);
  std::vector<std::pair<BySeed, BySeed>> sides(300, {a, c});
  sides.front() = {a, b};
  const std::vector<ShiftResult> many = CompareShifts(sides, {});
  EXPECT_EQ(many.front().answer, Answer::kDifferent);
  for (std::size_t i = 1; i < many.size(); ++i) EXPECT_EQ(many[i].answer, Answer::kSame);
}

TEST(CompareShifts, OnlySeedsThatBothSidesHaveTellWhetherValuesAreEqual) {
  EXPECT_TRUE(CompareOne({{0, 1}, {1, 2}, {2, 5}}, {{0, 1}, {2, 5}}).identical);
  EXPECT_FALSE(CompareOne({{0, 1}, {1, 2}}, {{0, 1}, {1, 3}}).identical);
  EXPECT_FALSE(CompareOne({{0, 1}}, {{1, 1}}).identical);
}

TEST(CompareShifts, AnEventThatComesOnNeitherSideHasNotMoved) {
  const BySeed a = {{0, 1.1}, {1, kInf}, {2, 0.9}, {3, 1.7}, {4, kInf}};
  BySeed b = a;
  for (int seed : {0, 2, 3}) b[seed] += 1e-6 * (seed + 1);
  const ShiftResult result = CompareOne(a, b);
  EXPECT_EQ(result.answer, Answer::kSame);
  EXPECT_GT(result.noise, 0.3);
  b[4] = 1.5;  // now it comes
  EXPECT_EQ(CompareOne(a, b).answer, Answer::kUnknown);
}

// Where seeds do not differ there is no noise to measure a shift by, only the margin itself.
TEST(CompareShifts, AHundredthOfTheMarginIsTheSameWithoutNoise) {
  const BySeed a = {{0, 2}, {1, 2}, {2, 2}, {3, 2}, {4, 2}};
  for (double shift : {1e-7, -0.01, 0.01, -0.03, 0.5}) {
    BySeed b = a;
    for (auto& [seed, value] : b) value += shift;
    EXPECT_EQ(CompareOne(a, b).answer, std::abs(shift) < 0.02 ? Answer::kSame : Answer::kDifferent)
        << shift;
  }
}

TEST(CompareShifts, EventsThatNoLongerComeHaveARank) {
  const BySeed a = {{0, 5}, {1, 6}, {2, 5}, {3, 7}, {4, 9}};
  const BySeed b = {{0, -kInf}, {1, -kInf}, {2, -kInf}, {3, -kInf}, {4, -kInf}};
  const ShiftResult result = CompareOne(a, b);
  EXPECT_EQ(result.answer, Answer::kDifferent);
  EXPECT_FALSE(result.shift);
  EXPECT_EQ(result.median_b, -kInf);
}

// The promise of `confidence`: among many comparisons of 20 margins each that have not moved, those
// with any false "different" are at most 5%, whatever the shape of the noise.
TEST(CompareShifts, FalseAlarmsStayWithinTheirBound) {
  std::mt19937 random(11);
  constexpr int kRounds = 400, kMargins = 20;
  const double limit = 0.05 * kRounds + 3 * std::sqrt(0.05 * 0.95 * kRounds);
  for (int seeds : {8, 12}) {
    int alarms = 0, not_corrected = 0, same = 0;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::pair<BySeed, BySeed>> sides;
      for (int i = 0; i < kMargins; ++i) {
        BySeed a = Draw(random, seeds), b = Draw(random, seeds, 0, 100);
        if (i % 2 == 1) {  // skewed and with ties
          for (BySeed* side : {&a, &b}) {
            for (auto& [seed, value] : *side) value = std::floor(std::exp(value));
          }
        }
        sides.emplace_back(std::move(a), std::move(b));
      }
      bool alarm = false, small_p = false;
      for (const ShiftResult& result : CompareShifts(sides, {})) {
        alarm |= result.answer == Answer::kDifferent;
        small_p |= result.test.p <= 0.05;
        same += result.answer == Answer::kSame;
      }
      alarms += alarm;
      not_corrected += small_p;
    }
    EXPECT_LE(alarms, limit) << seeds;
    // Without the correction the bound breaks: the test above can fail.
    EXPECT_GT(not_corrected, 3 * limit) << seeds;
    EXPECT_GT(same, 0.6 * kRounds * kMargins) << seeds;
  }
}

// A shift of `relevant_shift` that is called "same" is the other mistake: at most 5% per margin.
TEST(CompareShifts, RelevantShiftsAreRarelyCalledTheSame) {
  std::mt19937 random(12);
  constexpr int kRounds = 2000;
  for (bool paired : {false, true}) {
    int same = 0;
    for (int round = 0; round < kRounds; ++round) {
      const BySeed a = Draw(random, 10), b = Draw(random, 10, 2, paired ? 0 : 100);
      same += CompareOne(a, b).answer == Answer::kSame;
    }
    // The noise is itself estimated from ten seeds, which costs a little.
    EXPECT_LE(same, 0.10 * kRounds) << paired;
  }
}

// What "n more seeds" promises: with so many, the power is there.
TEST(NeededSeeds, GivesThePowerThatItPromises) {
  std::mt19937 random(13);
  constexpr int kRounds = 400;
  for (double relevant : {1.0, 2.0, 4.0}) {
    for (int tests : {1, 30}) {
      const ShiftOptions options{.relevant_shift = relevant};
      const double level = 0.05 / tests;
      const int seeds = NeededSeeds(level, /*paired=*/false, options);
      ASSERT_LT(seeds, kMaxNeededSeeds);
      EXPECT_LE(SmallestP(seeds, seeds), 0.05);
      int found = 0, found_with_half = 0;
      for (int round = 0; round < kRounds; ++round) {
        auto p = [&](int n) {
          std::vector<double> a, b;
          for (const auto& [seed, value] : Draw(random, n)) a.push_back(value);
          for (const auto& [seed, value] : Draw(random, n, relevant)) b.push_back(value);
          return StudentP(a, b);
        };
        found += p(seeds) <= level;
        found_with_half += p(std::max(2, seeds / 3)) <= level;
      }
      EXPECT_GE(found, 0.8 * kRounds - 4 * std::sqrt(0.16 * kRounds)) << relevant << " " << tests;
      EXPECT_LT(found_with_half, 0.8 * kRounds) << relevant << " " << tests;
    }
  }
}

TEST(NeededSeeds, GrowsWithTheNumberOfTestsAndAsTheShiftShrinks) {
  EXPECT_LE(NeededSeeds(0.05, false, {}), NeededSeeds(0.05 / 100, false, {}));
  EXPECT_LT(NeededSeeds(0.05, false, {.relevant_shift = 3}),
            NeededSeeds(0.05, false, {.relevant_shift = 1}));
  EXPECT_EQ(NeededSeeds(0.05, false, {.relevant_shift = 0.05}), kMaxNeededSeeds);
}

TEST(PairedRatio, IsTheGeometricMeanWithAnIntervalThatHoldsTheTruth) {
  const auto exact = PairedRatio({{0, 1.0}, {1, 2.0}}, {{0, 2.0}, {1, 4.0}, {2, 9.0}}, 0.95);
  ASSERT_TRUE(exact);
  EXPECT_NEAR(exact->ratio, 2, 1e-12);
  EXPECT_EQ(exact->pairs, 2);
  EXPECT_NEAR(exact->lo, 2, 1e-9);
  const auto single = PairedRatio({{0, 1.0}}, {{0, 3.0}}, 0.95);
  EXPECT_EQ(single->lo, 0);
  EXPECT_EQ(single->hi, kInf);
  EXPECT_FALSE(PairedRatio({{0, 1.0}}, {{1, 3.0}}, 0.95));
  EXPECT_FALSE(PairedRatio({{0, 0.0}}, {{0, 3.0}}, 0.95));

  std::mt19937 random(14);
  std::normal_distribution<double> noise;
  constexpr int kRounds = 1000;
  int held = 0;
  for (int round = 0; round < kRounds; ++round) {
    BySeed a, b;
    for (int seed = 0; seed < 5; ++seed) {
      a[seed] = std::exp(noise(random));  // differs a lot between seeds; pairs cancel that
      b[seed] = a[seed] * 1.1 * std::exp(0.05 * noise(random));
    }
    const auto ratio = PairedRatio(a, b, 0.95);
    held += ratio->lo <= 1.1 && 1.1 <= ratio->hi;
    EXPECT_LT(ratio->hi / ratio->lo, 1.6);
  }
  EXPECT_NEAR(held, 0.95 * kRounds, 4 * std::sqrt(0.0475 * kRounds));
}

}  // namespace
}  // namespace trainwreck
