#include "harness/launch/pace.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace pace_test {

Policy Unsaid(double seconds = 100, double stall_seconds = 10) {
  return {.seconds = seconds,
          .stall_seconds = stall_seconds,
          .has_seconds = false,
          .has_stall_seconds = false};
}

// Steps every `gap_s` from `begin_s` up to `end_s`.
void Walk(Pace& pace, double begin_s, double end_s, double gap_s, int first_step = 0) {
  int step = first_step;
  for (double now = begin_s; now <= end_s; now += gap_s) pace.Progress(now, true, ++step);
}

TEST(PaceTest, AStallIsMeasuredFromTheFirstStep) {
  Pace pace(Unsaid(), {.start_seconds = 60.0}, 100);
  pace.BeginAttempt(0);
  pace.Progress(1, /*has_begun=*/false, 0);  // a start record, then a long import
  EXPECT_EQ(pace.Check(59, false), Overrun::kNone);
  EXPECT_EQ(pace.Check(61, false), Overrun::kStart);
  EXPECT_EQ(pace.Sentence(Overrun::kStart, 61),
            "no first step within 60 s ('start_seconds' of the target)");
  pace.Progress(59, /*has_begun=*/true, 1);
  EXPECT_EQ(pace.Check(68, false), Overrun::kNone);
  EXPECT_EQ(pace.Check(70, false), Overrun::kStall);
}

TEST(PaceTest, EachAttemptStartsAnew) {
  Pace pace(Unsaid(), {.start_seconds = 60.0}, 100);
  pace.BeginAttempt(0);
  Walk(pace, 5, 9, 1);
  pace.BeginAttempt(20);
  pace.Progress(21, /*has_begun=*/false, 0);
  EXPECT_EQ(pace.Check(79, false), Overrun::kNone);
  EXPECT_EQ(pace.Check(81, false), Overrun::kStart);
  EXPECT_EQ(pace.Check(40, /*is_any_dead=*/true), Overrun::kStall);  // the others wait for it
}

TEST(PaceTest, WithoutALimitOfItsOwnAStartHasTwentySecondsOrTheStalls) {
  EXPECT_EQ(Pace(Unsaid(100, 2), {}, 10).start_limit_s(), 20);
  EXPECT_EQ(Pace(Unsaid(100, 50), {}, 10).start_limit_s(), 50);
  EXPECT_EQ(Pace(Unsaid(100, 50), {.start_seconds = 3.0}, 10).start_limit_s(), 3);
}

TEST(PaceTest, AStartOnAGpuHasAMinuteAtLeastAndMoreWhereManyStartAtOnce) {
  EXPECT_EQ(GpuStartSeconds(1), 60);
  EXPECT_EQ(GpuStartSeconds(4), 60);
  EXPECT_EQ(GpuStartSeconds(16), 240);
  Pace pace(Unsaid(100, 2), {}, 10, GpuStartSeconds(16));
  pace.BeginAttempt(0);
  EXPECT_EQ(pace.Check(239, false), Overrun::kNone);
  EXPECT_EQ(pace.Check(241, false), Overrun::kStart);
  EXPECT_EQ(pace.Sentence(Overrun::kStart, 241),
            "no first step within 240 s (if it needs longer to start, give the target "
            "'start_seconds')");
  const double least = GpuStartSeconds(4);
  EXPECT_EQ(Pace(Unsaid(100, 2), {.usual_start_seconds = 120}, 10, least).start_limit_s(), 120);
  EXPECT_EQ(Pace(Unsaid(100, 2), {.start_seconds = 3.0}, 10, least).start_limit_s(), 3);
}

TEST(PaceTest, ASlowStepStretchesTheNextOnesLimit) {
  Pace pace(Unsaid(), {}, 100);
  pace.BeginAttempt(0);
  pace.Progress(1, true, 1);
  EXPECT_EQ(pace.stall_limit_s(), 10);
  pace.Progress(9, true, 2);  // a step of 8 s
  EXPECT_EQ(pace.stall_limit_s(), 40);
  EXPECT_EQ(pace.Check(48, false), Overrun::kNone);
  EXPECT_EQ(pace.Check(50, false), Overrun::kStall);
}

TEST(PaceTest, TheScenariosStallLimitStandsBeforeTheTargets) {
  Policy said = Unsaid();
  EXPECT_EQ(Pace(said, {.stall_seconds = 70.0}, 10).stall_limit_s(), 70);
  said.has_stall_seconds = true;
  EXPECT_EQ(Pace(said, {.stall_seconds = 70.0}, 10).stall_limit_s(), 10);
}

TEST(PaceTest, ASlowRunGoesOnBeyondItsBudgetWhileItMakesProgress) {
  Pace pace(Unsaid(), {.seconds = 30.0}, 100);
  pace.BeginAttempt(0);
  Walk(pace, 50, 250, 2);  // 50 s of start count not at all, 100 steps take 200 s
  EXPECT_EQ(pace.Check(250, false), Overrun::kNone);
}

TEST(PaceTest, ARunThatWouldTakeTenBudgetsIsEndedAtItsBudget) {
  Pace pace(Unsaid(), {.seconds = 30.0}, 1000);
  pace.BeginAttempt(0);
  Walk(pace, 0, 30, 2);
  EXPECT_EQ(pace.Check(30, false), Overrun::kNone);
  EXPECT_EQ(pace.Check(31, false), Overrun::kBudget);
  EXPECT_EQ(pace.Sentence(Overrun::kBudget, 31),
            "over its budget of 30 s, and at its pace, 16 of 1000 steps in 31 s, it would take "
            "1938 s; 'budget' of the target in trainwreck.yaml says how long a run may take");
}

TEST(PaceTest, WorkWithoutAStepHasItsBudgetAlone) {
  Pace pace(Unsaid(30), {}, 1000);
  pace.BeginAttempt(0);
  for (double now = 0; now < 31; ++now) pace.Progress(now, true, 0);  // collectives, say
  EXPECT_EQ(pace.Check(31, false), Overrun::kBudget);
}

TEST(PaceTest, TheScenariosBudgetIsAHardBoundFromTheBeginning) {
  Policy said = Unsaid(30);
  said.has_seconds = true;
  Pace pace(said, {.start_seconds = 60.0, .seconds = 1000.0}, 100);
  pace.BeginAttempt(0);
  EXPECT_EQ(pace.Check(31, false), Overrun::kBudget);
  EXPECT_EQ(pace.Sentence(Overrun::kBudget, 31), "over its budget of 30 s");
}

}  // namespace pace_test
}  // namespace trainwreck
