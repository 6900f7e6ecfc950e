// What charts show of a formula.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/formula/formula.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace sketch_test {

TargetDescription TargetWithLoss() {
  TargetDescription target;
  for (const char* name : {"loss", "grad_norm"}) {
    SignalInfo info;
    info.name = name;
    info.scale = Scale::kLog;
    target.signals.push_back(info);
  }
  return target;
}

RunTrace TenSteps() {
  RunTrace trace;
  trace.planned_steps = 10;
  trace.finished = true;
  for (int step = 0; step < 10; ++step) {
    trace.series[{"loss", 0}].Set(step, 10 - step);
    trace.series[{"grad_norm", 0}].Set(step, step);
  }
  return trace;
}

std::vector<Sketch> Sketched(const std::string& text) {
  const RunTrace trace = TenSteps();
  const auto parsed = Formula::Parse(text);
  EXPECT_TRUE(parsed.formula) << text;
  return parsed.formula->Sketches({.self = &trace}, TargetWithLoss());
}

TEST(SketchTest, AComparisonInAWindowHasItsStepsAndItsThreshold) {
  const auto sketches = Sketched("eventually[2:5] loss > 3");
  ASSERT_EQ(sketches.size(), 1u);
  EXPECT_EQ(sketches[0].signal, "loss");
  EXPECT_EQ(sketches[0].from, 2);
  EXPECT_EQ(sketches[0].to, 6);  // both ends of a window lie inside
  EXPECT_EQ(sketches[0].comparison, ">");
  EXPECT_EQ(sketches[0].threshold, std::vector<double>{3});
  EXPECT_EQ(sketches[0].begin, 16u);
  EXPECT_EQ(sketches[0].end, 24u);
}

TEST(SketchTest, ASliceIsItsOwnWindowAndTheOtherSideIsComputed) {
  const auto sketches = Sketched("mean(loss[-2:]) < 0.5 * mean(loss[:2])");
  ASSERT_EQ(sketches.size(), 1u);
  EXPECT_EQ(sketches[0].from, 8);
  EXPECT_EQ(sketches[0].to, 10);
  ASSERT_EQ(sketches[0].threshold.size(), 1u);
  EXPECT_DOUBLE_EQ(sketches[0].threshold[0], 4.75);
}

TEST(SketchTest, ASignalOnTheRightTurnsTheComparisonRound) {
  const auto sketches = Sketched("always 3 <= loss");
  ASSERT_EQ(sketches.size(), 1u);
  EXPECT_EQ(sketches[0].comparison, ">=");
  EXPECT_EQ(sketches[0].to, 10);
}

TEST(SketchTest, AnotherSignalIsAThresholdOfEachStep) {
  const auto sketches = Sketched("always loss > 2 * grad_norm");
  ASSERT_EQ(sketches.size(), 1u);
  ASSERT_EQ(sketches[0].threshold.size(), 10u);
  EXPECT_EQ(sketches[0].threshold[4], 8);
}

TEST(SketchTest, WhatIsNotKnownOrIsNoComparisonHasNoThreshold) {
  for (const char* text : {"mean(loss[-2:]) < control.mean(loss[-2:])",
                           "eventually nonfinite(loss)", "log(loss[3]) + log(grad_norm[3]) > 1"}) {
    const auto sketches = Sketched(text);
    ASSERT_FALSE(sketches.empty()) << text;
    EXPECT_TRUE(sketches[0].threshold.empty()) << text;
    EXPECT_EQ(sketches[0].comparison, "") << text;
  }
}

}  // namespace sketch_test
}  // namespace trainwreck::formula
