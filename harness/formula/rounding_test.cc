// distance() and rounding(): how far a run is from control, and how far rounding alone takes it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "harness/formula/formula.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace rounding_test {

using testing::kInf;
using testing::kMissing;
using testing::kNan;
using testing::TestRun;

constexpr char kAgrees[] = "always distance(loss) <= 8 * rounding(loss)";

// Control, its rounding draws, and a run to compare; each test changes one.
struct Arms {
  TestRun self = TestRun(4).With("loss", {4, 2, 1, 1});
  TestRun control = TestRun(4).With("loss", {4, 2, 1, 1});
  TestRun draw_1 = TestRun(4).With("loss", {4, 2 + 0x1p-16, 1, 1});
  TestRun draw_2 = TestRun(4).With("loss", {4, 2 - 0x1p-17, 1 + 0x1p-16, 1});
  TestRun bug_in_control = TestRun(4).With("loss", {4, 3, 1, 1});
  std::string control_is = "control";

  Reading Of(const std::string& text) const {
    const auto parsed = Formula::Parse(text);
    EXPECT_TRUE(parsed.formula) << text;
    Runs runs{&self.trace(),
              {{"control", &control.trace()},
               {"rounding_1", &draw_1.trace()},
               {"rounding_2", &draw_2.trace()},
               {"rough", &bug_in_control.trace()}},
              control_is};
    return parsed.formula->Evaluate(runs, testing::TestTarget());
  }
  double Octaves(const std::string& text) const {
    return Of(text).margins[static_cast<int>(Unit::kOctave)]->lo;
  }
};

TEST(Distance, OfEqualRunsIsNoDistance) {
  const Arms arms;
  EXPECT_EQ(arms.Of(kAgrees).truth, Truth::kTrue);
  EXPECT_EQ(arms.Octaves(kAgrees), kInf);
}

// At step 0 the draws agree, so what 32 bits resolve is the envelope. At step 1, draw 1 is 2^-17
// off, relative to control. From step 2 on, draw 2 was 2^-16 off once.
TEST(Rounding, GrowsAsTheDrawsComeApartAndDoesNotShrink) {
  Arms arms;
  arms.self.With("loss", {4 + 4 * 0x1p-23, 2, 1, 1});
  EXPECT_EQ(arms.Octaves(kAgrees), 3);
  arms.self.With("loss", {4, 2 + 2 * 0x1p-17, 1, 1});
  EXPECT_EQ(arms.Octaves(kAgrees), 3);
  arms.self.With("loss", {4, 2, 1, 1 + 0x1p-14});
  EXPECT_EQ(arms.Octaves(kAgrees), 1);
  EXPECT_EQ(arms.Of(kAgrees).truth, Truth::kTrue);
}

TEST(Rounding, ABugIsFarOutsideAndNamedAtItsFirstStep) {
  Arms arms;
  arms.self.With("loss", {4, 2, 1 + 0x1p-8, 1 + 0x1p-7});
  const Reading reading = arms.Of(kAgrees);
  EXPECT_EQ(reading.truth, Truth::kFalse);
  EXPECT_EQ(reading.step, 2);
  EXPECT_EQ(arms.Octaves(kAgrees), 3 + 7 - 16);
}

TEST(Rounding, OfASignalThatMayBeNegativeIsADifference) {
  Arms arms;
  for (TestRun* run : {&arms.self, &arms.control, &arms.draw_1, &arms.draw_2}) {
    run->With("lr", {1, -1, 0, 4});
  }
  arms.draw_1.At("lr", 0, 1 + 0x1p-10);
  arms.self.At("lr", 2, 0x1p-8);
  EXPECT_EQ(arms.Octaves("always distance(lr) <= 8 * rounding(lr)"), 1);
}

// What stands in 32 bits is not known better than that, even where it is exactly 0.
TEST(Rounding, IsNeverZero) {
  Arms arms;
  for (TestRun* run : {&arms.self, &arms.control, &arms.draw_1, &arms.draw_2}) {
    run->With("loss", {0, 0, 0, 0});
  }
  EXPECT_EQ(arms.Octaves(kAgrees), kInf);
  arms.self.At("loss", 1, 1e-30);
  EXPECT_EQ(arms.Of(kAgrees).truth, Truth::kFalse);
}

TEST(Distance, WhatIsNotFiniteInOneOfTwoIsInfinitelyFar) {
  Arms arms;
  arms.self.At("loss", 2, kNan);
  EXPECT_EQ(arms.Of(kAgrees).truth, Truth::kFalse);
  EXPECT_EQ(arms.Octaves(kAgrees), -kInf);
  arms.control.At("loss", 2, kNan);
  EXPECT_EQ(arms.Of(kAgrees).truth, Truth::kUnknown);
}

TEST(Distance, ASampleThatOneOfTwoLacksIsADifference) {
  Arms arms;
  arms.self.With("loss", {4, 2, kMissing, 1});
  arms.self = TestRun(4).With("loss", {4, 2, kMissing, 1});
  EXPECT_EQ(arms.Of(kAgrees).truth, Truth::kFalse);
  arms.self.Unfinished();
  arms.self = TestRun(4).With("loss", {4, 2}).Unfinished();
  EXPECT_EQ(arms.Of(kAgrees).truth, Truth::kUnknown);
}

TEST(Distance, SparseSignalsAreComparedWhereOneOfTheTwoHasThem) {
  const std::string text = "always distance(eval_loss) <= 8 * rounding(eval_loss)";
  Arms arms;
  for (TestRun* run : {&arms.self, &arms.control, &arms.draw_1, &arms.draw_2}) {
    run->At("eval_loss", 1, 2);
  }
  EXPECT_EQ(arms.Of(text).truth, Truth::kTrue);
  arms.control.At("eval_loss", 3, 2);
  EXPECT_EQ(arms.Of(text).truth, Truth::kFalse);
}

// With a bug in both, the distance is from control with the bug; rounding is that of the healthy
// control.
TEST(Distance, MayBeFromAnotherControl) {
  Arms arms;
  arms.control_is = "rough";
  EXPECT_EQ(arms.Of(kAgrees).truth, Truth::kFalse);
  arms.self = arms.bug_in_control;
  EXPECT_EQ(arms.Octaves(kAgrees), kInf);
  EXPECT_EQ(arms.Of("always loss == control.loss").truth, Truth::kTrue);
  arms.self.At("loss", 1, 3 + 3 * 0x1p-14);
  // At step 1 the draws are 2^-17 off, relative to control, whose 2 is the scale here.
  EXPECT_NEAR(arms.Octaves(kAgrees), std::log2(8 * 2 * 0x1p-17 / (3 * 0x1p-14)), 1e-9);
}

TEST(Distance, OfZeroIsEqualityOfBits) {
  Arms arms;
  EXPECT_EQ(testing::Errors("always distance(loss) == 0", testing::TestVocabulary(4)), "");
  EXPECT_EQ(arms.Of("always distance(loss) == 0").truth, Truth::kTrue);
  arms.self.At("loss", 3, 1 + 0x1p-52);
  EXPECT_EQ(arms.Of("always distance(loss) == 0").truth, Truth::kFalse);
}

TEST(Rounding, WithoutDrawsIsUnknown) {
  const Arms arms;
  const auto parsed = Formula::Parse(kAgrees);
  const Runs runs{&arms.self.trace(), {{"control", &arms.control.trace()}}};
  EXPECT_EQ(parsed.formula->Evaluate(runs, testing::TestTarget()).truth, Truth::kUnknown);
}

TEST(Rounding, IsReadFromControlAndSaysSo) {
  const auto parsed = Formula::Parse(kAgrees);
  EXPECT_EQ(parsed.formula->arms(), (std::set<std::string>{"control"}));
  EXPECT_TRUE(parsed.formula->reads_rounding());
  EXPECT_FALSE(Formula::Parse("always distance(loss) < 1e-3").formula->reads_rounding());
}

}  // namespace rounding_test
}  // namespace trainwreck::formula
