// Ends of runs with which a scenario could pass without having shown what it claims. Each was open
// once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "harness/judge/test_support.h"
#include "harness/judge/verdict.h"

namespace trainwreck {
namespace endings_test {

using testing::AddEvent;
using testing::AddFired;
using testing::Bench;
using testing::Crash;
using testing::Crashing;
using ::testing::HasSubstr;
using testing::kSteps;
using testing::LearningLoss;
using testing::MakeCheck;
using testing::Outcome;
using testing::WithLoss;

void Add(std::vector<Check>& checks, const std::string& name, const std::string& formula) {
  checks.push_back(MakeCheck(name, formula));
}

void Hang(RunResult& run) {
  run.end = RunEnd::kStalled;
  AddEvent(run, "stalled", 10, {{"waiting_rank", 0}, {"lagging_rank", 1}});
}

void TimeOut(RunResult& run) {
  run.end = RunEnd::kTimeout;
  AddEvent(run, "timeout", 10, {{"seconds", 30}});
}

using Spoil = std::function<void(RunResult&)>;

struct EndCase {
  const char* name;
  const char* formula;  // a healthy check, which holds whatever the end is
  Spoil spoil;
  const char* outcome;
};

class ExcuseByAbsence : public ::testing::TestWithParam<EndCase> {};

// A claim that is true because an event is absent is about no end.
TEST_P(ExcuseByAbsence, ExcusesNoEndOfControl) {
  Bench bench;
  Add(bench.scenario().healthy, "calm", GetParam().formula);
  bench.In("control", -1, GetParam().spoil);
  EXPECT_EQ(Outcome(bench.Judged()), GetParam().outcome);
}

TEST_P(ExcuseByAbsence, ExcusesNoEndOfARemedy) {
  Bench bench;
  Add(bench.scenario().healthy, "calm", GetParam().formula);
  bench.In("lower_lr", -1, GetParam().spoil);
  EXPECT_EQ(Outcome(bench.Judged()), GetParam().outcome);
}

TEST_P(ExcuseByAbsence, ExcusesNoEndOfTheFaultArm) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck(
      "blows_up", std::string("eventually[:10] nonfinite(loss) and (") + GetParam().formula + ")");
  bench.In("fault", -1, GetParam().spoil);
  EXPECT_EQ(Outcome(bench.Judged()), GetParam().outcome);
}

const EndCase kEndCases[] = {
    {"CrashBesideNoKill", "not exited(signal=9)", Crashing(1, 0), "error/crash"},
    {"CrashBesideAnotherCode", "not exited(code=3)", Crashing(1, 0), "error/crash"},
    {"CrashBesideNeverStalled", "never stalled(waiting_rank=0)", Crashing(1, 0), "error/crash"},
    {"CrashBesideACleanExit", "not exited(signal=9) or exited(code=1)", Crashing(1, 0),
     "error/crash"},
    {"HangBesideNoKill", "not exited(signal=9)", Hang, "error/timeout"},
    {"HangBesideNoRestart", "never restarted(attempt=1)", Hang, "error/timeout"},
    {"TimeoutBesideNeverStalled", "never stalled(waiting_rank=0)", TimeOut, "error/timeout"},
    {"TimeoutBesideNoKill", "not exited(signal=9)", TimeOut, "error/timeout"},
    {"CrashBesideAnAlternative", "exited(code=1) or loss[0] > 0", Crashing(1, 0), "error/crash"},
};
INSTANTIATE_TEST_SUITE_P(Claims, ExcuseByAbsence, ::testing::ValuesIn(kEndCases),
                         [](const auto& info) { return info.param.name; });

// What is left: a claim that holds, and only by the events of this end.
TEST(EndTest, AClaimAboutTheVeryEndExcusesIt) {
  Bench bench;
  bench.scenario().symptoms[0] =
      MakeCheck("dies", "exited(signal=9) and eventually[:10] nonfinite(loss)");
  for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, Crashing(-1, 9));
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
}

// A guard of the program ends it when its loss is NaN, and the symptom allows both.
TEST(EndTest, AnAlternativeOfASymptomExcusesTheEndBesideAnother) {
  const std::string is_nan = "eventually[:10] nonfinite(loss)";
  for (const auto& [claim, outcome] :
       {std::pair<std::string, const char*>{is_nan + " or exited(code=1)", "pass"},
        {"exited(signal=9) or " + is_nan + " or exited(code=1)", "pass"},
        {is_nan + " or exited(rank=0) and not ended(rank=0, why=completed)", "pass"},
        {is_nan + " or exited(code=3)", "error/crash"},
        {is_nan + " or not exited(code=3)", "error/crash"},
        {is_nan + " or never ended(rank=0, why=completed)", "error/crash"},
        {is_nan, "error/crash"}}) {
    Bench bench;
    bench.scenario().symptoms[0] = MakeCheck("no_good", claim);
    for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, Crashing(1, 0));
    EXPECT_EQ(Outcome(bench.Judged()), outcome) << claim;
  }
}

TEST(EndTest, WhatTheTargetSaysOfItsEndIsAboutItToo) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("dies", "ended(rank=0, why=exception)");
  const auto die = [](RunResult& run) {
    AddEvent(run, "ended", 10, {{"rank", 0}, {"why", "exception"}});
    Crash(run, 1, 0);
  };
  for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, die);
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  // A rank that was done, in a run that crashed.
  bench.scenario().symptoms[0] = MakeCheck("dies", "ended(rank=0, why=completed)");
  const auto outlive = [](RunResult& run) {
    run.trace.events.clear();
    AddFired(run);
    AddEvent(run, "ended", 10, {{"rank", 0}, {"why", "completed"}});
    Crash(run, 1, 0, 1);
  };
  for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, outlive);
  EXPECT_EQ(Outcome(bench.Judged()), "error/crash");
}

TEST(EndTest, WhatALauncherSaysOfItsRankIsAboutItToo) {
  const auto die = [](RunResult& run) {
    AddEvent(run, "rank_failed", 10, {{"rank", 0}, {"signal", 9}});
    Crash(run, 137, 0);
  };
  for (const auto& [claim, outcome] :
       {std::pair{"rank_failed(rank=0)", "pass"},
        {"not rank_failed(rank=1) and eventually[:10] nonfinite(loss)", "error/crash"}}) {
    Bench bench;
    bench.scenario().symptoms[0] = MakeCheck("dies", claim);
    for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, die);
    EXPECT_EQ(Outcome(bench.Judged()), outcome) << claim;
  }
}

TEST(EndTest, AClaimAboutAHangExcusesNoTimeoutAndNoCrash) {
  for (const auto& [spoil, outcome] :
       {std::pair<Spoil, const char*>{TimeOut, "error/timeout"}, {Crashing(1, 0), "error/crash"}}) {
    Bench bench;
    bench.scenario().symptoms[0] = MakeCheck("hangs", "stalled(lagging_rank=1)");
    bench.In("decay", -1, Hang);
    // It was stalled and went on, say; then it ended otherwise.
    bench.In("fault", -1, [spoil = spoil](RunResult& run) {
      Hang(run);
      spoil(run);
    });
    EXPECT_EQ(Outcome(bench.Judged()), outcome);
  }
}

TEST(EndTest, TheEndOfAnEarlierAttemptIsNotThisOne) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("dies", "exited(signal=9)");
  bench.In("decay", -1, Crashing(-1, 9));
  bench.In("fault", -1, [](RunResult& run) {
    Crash(run, -1, 9, 1, /*time_s=*/1);
    AddEvent(run, "restarted", 10, {{"attempt", 1}});
    run.trace.events.back().time_s = 2;
    Crash(run, 1, 0, 0, /*time_s=*/3);
  });
  EXPECT_EQ(Outcome(bench.Judged()), "error/crash");
}

// A rank below another launcher is watched, and its watcher's clock begins anew with each attempt:
// the second end has a time before that of the restart.
TEST(EndTest, TheEndOfARanksAttemptIsKnownByItsNumber) {
  const auto die_twice = [](RunResult& run) {
    for (const auto& [attempt, spawned_s, died_s] : {std::tuple{0, 0.0, 11.8}, {1, 13.1, 10.5}}) {
      if (attempt > 0) {
        AddEvent(run, "restarted", 10, {{"attempt", attempt}});
        run.trace.events.back().time_s = 13;
      }
      AddEvent(run, "spawned", 10, {{"rank", 0}, {"attempt", attempt}, {"phase", "train"}});
      run.trace.events.back().time_s = spawned_s;
      Crash(run, -1, 9, 0, died_s);
      run.trace.events.back().fields.update({{"attempt", attempt}, {"phase", "train"}});
    }
  };
  for (const auto& [claim, outcome] : {std::pair{"exited(signal=9, attempt=1)", "pass"},
                                       {"exited(signal=9, attempt=0)", "error/crash"}}) {
    Bench bench;
    bench.scenario().symptoms[0] = MakeCheck("dies", claim);
    for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, die_twice);
    EXPECT_EQ(Outcome(bench.Judged()), outcome) << claim;
  }
}

TEST(EndTest, ASecondFindingIsNotMadeOfAClaimThatFailedByThisEnd) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("dies", "exited(signal=9)");
  for (const char* arm : {"fault", "decay", "lower_lr"}) bench.In(arm, -1, Crashing(-1, 9));
  EXPECT_EQ(Outcome(bench.Judged()), "fail/remedy_ineffective");
}

TEST(EndTest, OfControlIsTheFindingWhateverFailsByIt) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("dies", "exited(code=1)");
  bench.scenario().healthy.push_back(MakeCheck("lives", "not exited(code=1)"));
  for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, Crashing(1, 0));
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  bench.In("control", 1, Crashing(1, 0));
  EXPECT_EQ(Outcome(bench.Judged()), "error/crash");
}

// Half a run.

Spoil EndingAfter(int steps) {
  return [steps](RunResult& run) {
    std::vector<double> loss = LearningLoss(1);
    loss.resize(steps);
    WithLoss(loss)(run);
    run.end = RunEnd::kCompleted;
    AddEvent(run, "ended_early", steps - 1,
             {{"rank", 0}, {"steps_done", steps}, {"steps_planned", kSteps}});
  };
}

TEST(IncompleteTest, AnyArmThatEndsBeforeItsPlannedSteps) {
  for (const char* arm : {"control", "fault", "lower_lr", "decay"}) {
    for (int steps : {1, 10, kSteps - 1}) {
      Bench bench;
      bench.scenario().healthy[0] = MakeCheck("learns", "loss[0] > 0");
      bench.scenario().quality.reset();
      bench.In(arm, 1, EndingAfter(steps));
      const Verdict verdict = bench.Judged();
      EXPECT_EQ(Outcome(verdict), "error/incomplete") << arm << " " << steps;
      EXPECT_THAT(verdict.reason,
                  HasSubstr("completed after " + std::to_string(steps) + " of 20 steps"));
    }
  }
}

TEST(IncompleteTest, TheReferenceToo) {
  Bench bench;
  bench.scenario().has_reference = true;
  bench.In("reference", 0, EndingAfter(10));
  EXPECT_EQ(Outcome(bench.Judged()), "error/incomplete");
}

TEST(IncompleteTest, ARunThatWroteItsTraceWithoutAnyStep) {
  const auto empty = [](RunResult& run) {
    run.trace.series.clear();
    run.trace.time_s.clear();
  };
  Bench bench;
  bench.scenario().healthy[0] = MakeCheck("ends", "not exited(code=1)");
  bench.scenario().quality.reset();
  bench.In("control", -1, empty);
  EXPECT_EQ(Outcome(bench.Judged()), "error/incomplete");
  bench.target.level = 1;
  EXPECT_EQ(Outcome(bench.Judged()), "error/incomplete");
  bench.target.level = 0;  // nobody said that it shows its steps
  EXPECT_NE(Outcome(bench.Judged()), "error/incomplete");
}

TEST(IncompleteTest, WhereNoNumberOfStepsIsPlannedThereAreNeverTooFew) {
  Bench bench;
  bench.In("decay", -1, [](RunResult& run) { run.trace.planned_steps = 0; });
  EXPECT_NE(bench.Judged().verdict, VerdictKind::kError);
}

TEST(IncompleteTest, AnyRankThatStopsBeforeTheOthers) {
  Bench bench;
  bench.In("control", 0, [](RunResult& run) {
    for (int step = 0; step < kSteps - 3; ++step) run.trace.time_s[1].Set(step, step);
    run.trace.world_size = 2;
  });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "error/incomplete");
  EXPECT_THAT(verdict.reason, HasSubstr("17 of 20 steps of rank 1"));
}

TEST(IncompleteTest, ARankThatOnlyPrintsMayPrintOneStepAlone) {
  Bench bench;
  bench.In("control", 0, [](RunResult& run) {
    run.trace.time_s[1].Set(0, 0);
    run.trace.world_size = 2;
    run.trace.starts[0] = Json::object();
  });
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  bench.In("control", 0, [](RunResult& run) { run.trace.starts[1] = Json::object(); });
  EXPECT_EQ(Outcome(bench.Judged()), "error/incomplete");
}

TEST(IncompleteTest, ALogOfEveryFifthStepIsWhole) {
  const auto every_fifth = [](int last) {
    return [last](RunResult& run) {
      run.trace.time_s.clear();
      for (int step = 4; step <= last; step += 5) run.trace.time_s[0].Set(step, step);
    };
  };
  Bench bench;
  bench.In("lower_lr", -1, every_fifth(19));
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  bench.In("lower_lr", -1, every_fifth(14));
  EXPECT_EQ(Outcome(bench.Judged()), "error/incomplete");
}

TEST(IncompleteTest, AnEarlyEndCanBeClaimed) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("gives_up", "ended_early(steps_done=8)");
  bench.In("fault", -1, EndingAfter(8));
  Bench other = bench;
  bench.In("decay", -1, EndingAfter(8));
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  other.In("decay", -1, EndingAfter(9));
  EXPECT_EQ(Outcome(other.Judged()), "error/incomplete") << "another end than the claimed one";
}

}  // namespace endings_test
}  // namespace trainwreck
