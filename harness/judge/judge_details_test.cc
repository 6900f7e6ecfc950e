// The small print of verdicts: what is kept, named and shown, and when a run may be stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/test_support.h"
#include "harness/judge/verdict.h"

namespace trainwreck {
namespace judge_details_test {

using testing::AddEvent;
using testing::Bench;
using ::testing::Contains;
using testing::ExplodingLoss;
using ::testing::HasSubstr;
using testing::LearningLoss;
using testing::MakeCheck;
using ::testing::Not;
using testing::Outcome;
using testing::WithLoss;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void Crash(RunResult& run) {
  run.end = RunEnd::kFailed;
  AddEvent(run, "exited", 10, {{"rank", 1}, {"code", 3}, {"signal", 0}});
  run.exits = {{.rank = 0, .code = 0, .last_words = "all is well"},
               {.rank = 1, .code = 3, .last_words = "out of cheese"}};
}

TEST(DetailsTest, ARunThatWasNotMadeKeepsItsPlace) {
  Bench bench;
  bench.MakeRuns();
  bench.results.runs["decay"].erase(1);
  const Verdict verdict = Judge(bench.results, bench.target);
  ASSERT_EQ(verdict.runs.at("decay").size(), 3u);
  EXPECT_EQ(verdict.runs.at("decay")[1].detail, "not run");
  EXPECT_EQ(verdict.runs.at("decay")[2].end, RunEnd::kCompleted);
}

TEST(DetailsTest, ABadEndComesFirstWithTheWordsOfTheRankThatFailed) {
  Bench bench;
  bench.In("control", 0, Crash);
  bench.In("control", 0, WithLoss(LearningLoss(4)));
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.checks.front().check, "end");
  EXPECT_THAT(verdict.reason, HasSubstr("seed 0: failed"));
  EXPECT_THAT(verdict.reason, HasSubstr("last words of rank 1: out of cheese"));
  EXPECT_THAT(verdict.reason, Not(HasSubstr("all is well")));
}

TEST(DetailsTest, ARunThatTheHarnessEndedSaysWhy) {
  Bench bench;
  bench.In("control", 0, [](RunResult& run) {
    Crash(run);
    run.end = RunEnd::kGarbage;
    run.detail = "step 60 is beyond the planned 60";
  });
  EXPECT_EQ(bench.Judged().arms.front().ended, "seed 0: garbage, step 60 is beyond the planned 60");
}

TEST(DetailsTest, WhatWasSeenIsShownOfSeed0Too) {
  Bench bench;
  bench.In("fault", 0, WithLoss(LearningLoss(1)));
  const Verdict verdict = bench.Judged();
  EXPECT_THAT(verdict.reason, HasSubstr("; seed 0: "));
  EXPECT_EQ(verdict.checks.front().worst_seed, 0);
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class.empty()) continue;
    EXPECT_THAT(check.rerun_command, HasSubstr("--arm fault --seed 0"));
  }
}

TEST(DetailsTest, TheFirstOfSeveralIsNamedAndTheOthersAreCounted) {
  Bench bench;
  bench.scenario().symptoms.push_back(MakeCheck("never_low", "min(loss[-5:]) > 3"));
  bench.scenario().remedies[0].resolves = {"blows_up"};
  bench.In("fault", -1, WithLoss(LearningLoss(1)));
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "fail/symptom_absent");
  EXPECT_THAT(verdict.reason, HasSubstr("'blows_up' in fault: "));
  EXPECT_THAT(verdict.reason, HasSubstr("(and 1 more like it)"));
}

TEST(DetailsTest, AClaimedEndIsExcusedWhateverElseHappenedLater) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("dies", "exited(code=3)");
  for (const char* arm : {"fault", "decay"}) {
    bench.In(arm, -1, [](RunResult& run) {
      Crash(run);
      AddEvent(run, "checkpoint_saved", 11, {{"steps_done", 11}});
      run.trace.events.back().time_s = 9;
    });
  }
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
}

TEST(DetailsTest, TheFirstDifferenceOfAStepIsNamed) {
  RunResult a = testing::MakeRun(LearningLoss(1));
  RunResult b = a;
  for (int step : {7, 0}) {
    for (const char* signal : {"loss", "grad_norm"}) {
      a.trace.series[{signal, 0}].Set(step, 1);
      b.trace.series[{signal, 0}].Set(step, 2);
    }
    EXPECT_EQ(CompareTraces(a.trace, b.trace),
              "grad_norm at step " + std::to_string(step) + " of rank 0: 1 and 2");
  }
}

TEST(DetailsTest, ANanOnOneSideIsADifference) {
  RunResult a = testing::MakeRun(LearningLoss(1));
  RunResult b = a;
  b.trace.series[{"loss", 0}].Set(7, kNan);
  EXPECT_THAT(CompareTraces(a.trace, b.trace), HasSubstr("loss at step 7"));
  EXPECT_THAT(CompareTraces(b.trace, a.trace), HasSubstr("loss at step 7"));
}

TEST(DetailsTest, AMarginThatMayStillGrowIsNotKnownToBeClear) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("high", "eventually loss > 3.9", "1 octave");
  bench.scenario().remedies[0].resolves = {"none"};
  bench.scenario().no_remedy = "none";
  bench.In("control", -1, WithLoss(std::vector<double>(testing::kSteps, 1.0)));
  bench.scenario().healthy.clear();
  bench.scenario().quality.reset();
  bench.In("fault", -1, [](RunResult& run) {
    WithLoss({4, 4, 4, 4, 4, 4})(run);
    run.end = RunEnd::kDecided;
  });
  EXPECT_EQ(Outcome(bench.Judged()), "inconclusive/undecided");
}

// A program of level 0, which is looked at from outside.
TEST(SoundTest, OnlySignalsThatTheTargetOffersAndOnlyTheirSamples) {
  Bench bench;
  bench.target.level = 0;
  bench.target.signals.resize(1);  // the loss
  EXPECT_EQ(bench.target.signals[0].name, "loss");
  bench.In("control", -1, [](RunResult& run) {
    run.trace.series[{"step_s", 0}].Set(3, kNan);
    Series every_other;
    for (int step = 0; step < testing::kSteps; step += 2) {
      every_other.Set(step, run.trace.series[{"loss", 0}].values[step]);
    }
    run.trace.series[{"loss", 0}] = every_other;
  });
  bench.scenario().healthy[0] = MakeCheck("begins", "loss[0] > 1");
  bench.scenario().symptoms[0] = MakeCheck("blows_up", "eventually[5:5] nonfinite(loss)");
  bench.In("control", -1, [](RunResult& run) { run.trace.series[{"loss", 0}].Set(5, 3); });
  bench.scenario().quality.reset();
  EXPECT_EQ(Outcome(bench.Judged()), "pass") << bench.Judged().reason;
  bench.In("control", 2, [](RunResult& run) { run.trace.series[{"loss", 0}].Set(8, 0); });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "fail/control_unhealthy");
  for (const CheckResult& check : verdict.checks) {
    if (check.check != "signals_sound" || check.arm != "lower_lr") continue;
    EXPECT_EQ(check.worst_seed, 0);
  }
  EXPECT_THAT(verdict.reason, HasSubstr("loss is 0, though its scale is positive"));
  EXPECT_THAT(verdict.reason, Not(HasSubstr("not all could be read")));
  bench.In("control", 2, [](RunResult& run) { run.trace.series[{"loss{head}", 0}].Set(8, kNan); });
  EXPECT_THAT(bench.Judged().reason, HasSubstr("loss is 0")) << "the first of the same step";
}

TEST(SoundTest, ATimeMayBeZero) {
  Bench bench;
  bench.target.level = 0;
  bench.target.signals.resize(1);
  bench.target.signals.push_back({.name = "comm_s", .scale = Scale::kLog, .optional = true});
  const auto spent = [&](double seconds) {
    bench.In("control", -1, [&](RunResult& run) {
      run.trace.series[{"comm_s", 0}].Set(3, seconds);
    });
    return Outcome(bench.Judged());
  };
  EXPECT_EQ(spent(0), "pass") << bench.Judged().reason;
  EXPECT_EQ(spent(-1), "fail/control_unhealthy");
}

TEST(RemarksTest, ARunWithoutAStepEqualsNone) {
  Bench bench;
  bench.In("decay", -1, [](RunResult& run) {
    run.trace.series.clear();
    run.end = RunEnd::kDecided;
  });
  EXPECT_THAT(bench.Judged().remarks, Not(Contains(HasSubstr("'decay' equals"))));
}

// Stopping early.
bool DecidedAt6(const std::string& arm_name, Bench bench = {}) {
  bench.scenario().symptoms[0] = MakeCheck("high", "eventually loss > 3.9", "1 octave");
  bench.MakeRuns();
  for (const ArmPlan& arm : bench.cases[0].arms) {
    if (arm.name != arm_name) continue;
    RunResult run = testing::MakeRun({4, 4, 4, 4, 4, 4});
    testing::AddFired(run);
    run.trace.finished = false;
    return IsDecided(bench.cases[0], arm.runs[0], run.trace, {}, bench.target);
  }
  throw std::runtime_error("no arm " + arm_name);
}

TEST(StopTest, ASymptomWhoseMarginMayGrowIsWaitedForInTheFaultArmOnly) {
  EXPECT_FALSE(DecidedAt6("fault"));
  EXPECT_TRUE(DecidedAt6("decay")) << "a decoy needs no margin";
}

TEST(StopTest, AnArmThatClaimsNothingIsRunToItsEnd) {
  Bench bench;
  bench.scenario().decoys[0].keeps = {"of_another_point"};
  EXPECT_FALSE(DecidedAt6("decay", bench));
}

TEST(NondeterminismTest, IsAFailureUnlessItIsExpected) {
  Scenario scenario;
  Verdict verdict;
  verdict.verdict = VerdictKind::kPass;
  FailAsNondeterministic(scenario, "run a and its repetition differ", verdict);
  EXPECT_EQ(Outcome(verdict), "fail/nondeterministic");
  EXPECT_EQ(verdict.reason, "run a and its repetition differ");
  scenario.expect.failure_class = FailureClass::kNondeterministic;
  scenario.expect.reason = "atomics";
  FailAsNondeterministic(scenario, "they differ", verdict);
  EXPECT_EQ(Outcome(verdict), "pass");
  EXPECT_EQ(verdict.seen_verdict, VerdictKind::kFail);
  EXPECT_THAT(verdict.reason, HasSubstr("atomics"));
  verdict = {};
  verdict.verdict = VerdictKind::kError;
  FailAsNondeterministic(scenario, "they differ", verdict);
  EXPECT_EQ(Outcome(verdict), "error");
}

}  // namespace judge_details_test
}  // namespace trainwreck
