// Ways in which a scenario or a program could pass without having shown what it claims. Each was
// open once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/test_support.h"
#include "harness/judge/verdict.h"

namespace trainwreck {
namespace back_doors_test {

using testing::AddEvent;
using testing::AddFired;
using testing::Bench;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::ExplodingLoss;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kBlowUpStep;
using testing::kSteps;
using testing::LearningLoss;
using testing::MakeCheck;
using ::testing::Not;
using testing::WithLoss;

std::string Outcome(const Verdict& verdict) {
  return OutcomeText(verdict.verdict, verdict.failure_class);
}

void Add(std::vector<Check>& checks, const std::string& name, const std::string& formula) {
  checks.push_back(MakeCheck(name, formula));
}

// The launcher's record of a rank that ended badly.
void Crash(RunResult& run, int code, int signal, int rank = 0, double time_s = 1) {
  run.end = RunEnd::kFailed;
  AddEvent(run, "exited", 10, {{"rank", rank}, {"code", code}, {"signal", signal}});
  run.trace.events.back().time_s = time_s;
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
      "blows_up", std::string("eventually[:10] nonfinite(loss) and ") + GetParam().formula);
  bench.In("fault", -1, GetParam().spoil);
  EXPECT_EQ(Outcome(bench.Judged()), GetParam().outcome);
}

Spoil Crashing(int code, int signal) {
  return [=](RunResult& run) { Crash(run, code, signal); };
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

TEST(EndTest, ASecondFindingIsNotMadeOfAClaimThatFailedByThisEnd) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("dies", "exited(signal=9)");
  for (const char* arm : {"fault", "decay", "lower_lr"}) bench.In(arm, -1, Crashing(-1, 9));
  EXPECT_EQ(Outcome(bench.Judged()), "fail/remedy_ineffective");
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

// Seeds that may be lost.

Bench TenSeeds() {
  Bench bench;
  bench.scenario().seed_count = 10;
  bench.scenario().seed_require = 6;
  return bench;
}

TEST(SeedsTest, ARemedyMayNotFailInTheSeedsInWhichTheSymptomWasShown) {
  Bench bench = TenSeeds();
  for (int seed = 0; seed < 4; ++seed) bench.In("fault", seed, WithLoss(LearningLoss(1)));
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  for (int seed = 4; seed < 8; ++seed) {
    bench.In("lower_lr", seed, WithLoss(ExplodingLoss(kBlowUpStep)));
  }
  // Four seeds without the symptom and four others with a remedy that fails: two are left.
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kFail) << Outcome(verdict);
  EXPECT_THAT(verdict.reason, HasSubstr("`require: 6` lets 4 go"));
}

TEST(SeedsTest, EachSeedIsLostAsAWholeOverAllArmsAndChecks) {
  Bench bench = TenSeeds();
  for (const char* arm : {"control", "fault", "decay", "lower_lr"}) {
    for (int seed = 0; seed < 4; ++seed) bench.In(arm, seed, WithLoss(LearningLoss(4)));
  }
  EXPECT_EQ(Outcome(bench.Judged()), "pass") << "the same four in all arms";
  bench.In("lower_lr", 9, WithLoss(LearningLoss(4)));
  EXPECT_EQ(bench.Judged().verdict, VerdictKind::kFail) << "a fifth";
}

TEST(SeedsTest, UnknownSeedsAreCountedWithTheBroken) {
  Bench bench = TenSeeds();
  for (int seed = 0; seed < 4; ++seed) bench.In("fault", seed, WithLoss(LearningLoss(1)));
  std::vector<double> gap = LearningLoss(1);
  gap[17] = std::numeric_limits<double>::quiet_NaN();
  bench.In("control", 7, WithLoss(gap));
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "inconclusive/undecided");
  EXPECT_THAT(verdict.reason, HasSubstr("broken or unknown in seeds 0, 1, 2, 3, 7, "));
}

TEST(SeedsTest, AWeakSymptomCostsItsSeed) {
  Bench bench = TenSeeds();
  for (int seed = 0; seed < 4; ++seed) bench.In("fault", seed, WithLoss(ExplodingLoss(9)));
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  bench.In("decay", 5, WithLoss(LearningLoss(1)));
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "fail/symptom_weak");
}

TEST(SeedsTest, NothingThatPassesHasANegativeMargin) {
  Bench bench = TenSeeds();
  for (int seed : {0, 3}) bench.In("fault", seed, WithLoss(LearningLoss(1)));
  for (int seed : {3, 5}) bench.In("lower_lr", seed, WithLoss(LearningLoss(3.9)));
  const Verdict verdict = bench.Judged();
  ASSERT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_THAT(verdict.tolerated_seeds, ElementsAre(0, 3, 5));
  EXPECT_THAT(verdict.remarks, Contains(HasSubstr("seeds 0 3 5")));
  for (const CheckResult& check : verdict.checks) {
    EXPECT_GT(check.worst_margin.value_or(1), 0) << check.check << " in " << check.arm;
  }
}

TEST(SeedsTest, AFaultThatDoesNotFireCostsItsSeed) {
  Bench bench = TenSeeds();
  for (int seed = 0; seed < 4; ++seed) bench.In("control", seed, WithLoss(LearningLoss(4)));
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  bench.In("decay", 6, [](RunResult& run) { run.trace.events.clear(); });
  EXPECT_EQ(Outcome(bench.Judged()), "fail/fault_not_fired");
}

// Control.

TEST(ControlTest, ARestartIsNoHealth) {
  for (const char* arm : {"control", "reference"}) {
    Bench bench;
    bench.scenario().has_reference = true;
    bench.In(arm, 1, [](RunResult& run) { run.restarts = 1; });
    const Verdict verdict = bench.Judged();
    EXPECT_EQ(Outcome(verdict), "fail/control_unhealthy") << arm;
    EXPECT_THAT(verdict.reason, HasSubstr("needs no restart, seed 1 had one"));
  }
  Bench bench;
  bench.In("lower_lr", 1, [](RunResult& run) { run.restarts = 1; });
  EXPECT_EQ(Outcome(bench.Judged()), "pass") << "what a remedy does";
}

TEST(ControlTest, TheFaultMustNotActThere) {
  Bench bench;
  bench.In("control", 2, [](RunResult& run) { AddFired(run); });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "fail/control_unhealthy");
  EXPECT_THAT(verdict.reason, HasSubstr("must not act here, it did in seed 2"));
}

TEST(EvidenceTest, OnlyTheEventFiredIsEvidence) {
  Bench bench;
  for (const CheckResult& check : bench.Judged().checks) {
    if (check.check != "fired") continue;
    EXPECT_EQ(check.readings[1].truth, formula::Truth::kTrue) << check.arm;
    EXPECT_THAT(check.readings[1].seen, HasSubstr("it changed 0.1 to 1.5"));
    EXPECT_EQ(check.worst_seed, 0) << "one to look at";
  }
  bench.In("fault", 1, [](RunResult& run) {
    run.trace.events[0].name = "noticed";
    run.trace.events[0].fields["event"] = "noticed";
  });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "fail/fault_not_fired");
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class.empty()) continue;
    EXPECT_EQ(check.readings[1].truth, formula::Truth::kFalse);
  }
}

TEST(ControlTest, WithoutAHealthyCheckItsSignalsMustBeSound) {
  Bench bench;
  bench.scenario().healthy.clear();
  bench.scenario().symptoms[0] = MakeCheck("blows_up", "eventually[:8] nonfinite(loss)");
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  EXPECT_THAT(bench.Judged().remarks, Contains(HasSubstr("no `healthy` check")));
  bench.In("control", -1, WithLoss(ExplodingLoss(15)));
  EXPECT_EQ(Outcome(bench.Judged()), "fail/control_unhealthy");
}

TEST(ControlTest, AHealthyCheckThatComparesItWithItselfIsNone) {
  Bench bench;
  bench.scenario().healthy[0] =
      MakeCheck("as_good", "mean(loss[-5:]) <= 1.25 * control.mean(loss[-5:])");
  bench.scenario().symptoms[0] = MakeCheck("blows_up", "eventually[:8] nonfinite(loss)");
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  EXPECT_THAT(bench.Judged().remarks, Contains(HasSubstr("no `healthy` check")));
  bench.In("control", -1, [](RunResult& run) {
    run.trace.series[{"loss", 0}].Set(12, std::numeric_limits<double>::infinity());
  });
  EXPECT_EQ(Outcome(bench.Judged()), "fail/control_unhealthy");
}

// What is said, since it may be right.

TEST(RemarksTest, ASoundCaseHasNoneButItsSeeds) {
  Bench bench;
  bench.In("control", 1, WithLoss(LearningLoss(1.001)));
  bench.In("decay", 1, WithLoss(ExplodingLoss(4)));
  EXPECT_THAT(bench.Judged().remarks, IsEmpty());
}

TEST(RemarksTest, ArmsThatAreEqualBitForBit) {
  Bench bench;
  bench.In("control", 1, WithLoss(LearningLoss(1.001)));
  bench.In("lower_lr", -1, WithLoss(LearningLoss(1.0)));
  EXPECT_THAT(bench.Judged().remarks,
              ElementsAre(HasSubstr("decoy 'decay' equals the fault arm bit for bit")));
  bench.In("lower_lr", 1, WithLoss(LearningLoss(1.001)));
  bench.In("lower_lr", 2, [](RunResult& run) { run.trace.series[{"step_s", 0}].Set(3, 0.5); });
  EXPECT_THAT(bench.Judged().remarks,
              Contains(HasSubstr("remedy 'lower_lr' equals control bit for bit")));
  bench.In("lower_lr", 0, [](RunResult& run) {
    double& last = run.trace.series[{"loss", 0}].values.back();
    last = std::nextafter(last, 9.0);
  });
  EXPECT_THAT(bench.Judged().remarks, Not(Contains(HasSubstr("'lower_lr'"))))
      << "one bit, one seed";
}

TEST(RemarksTest, RunsThatWereCutOffAreNotCalledEqual) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("dies", "exited(code=1)");
  for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, Crashing(1, 0));
  EXPECT_THAT(bench.Judged().remarks, Not(Contains(HasSubstr("'decay'"))));
}

TEST(RemarksTest, AProgramThatDoesNotUseItsSeed) {
  Bench bench;
  EXPECT_THAT(bench.Judged().remarks, Contains(HasSubstr("in all 3 seeds")));
  bench.scenario().seed_count = bench.scenario().seed_require = 1;
  EXPECT_THAT(bench.Judged().remarks, Not(Contains(HasSubstr("does not use its seed"))));
}

TEST(RemarksTest, ARemedyThatWaivesEverything) {
  Bench bench;
  bench.scenario().remedies[0].waives = {"learns", "quality"};
  EXPECT_THAT(bench.Judged().remarks,
              Contains(HasSubstr("remedy 'lower_lr' waives all that is healthy")));
}

// A symptom of another point of the matrix.
TEST(RemarksTest, RemediesAndDecoysThatClaimNothingHere) {
  Bench bench;
  bench.scenario().points[0].name = "sgd";
  bench.scenario().symptoms.push_back(MakeCheck("stuck", "min(loss[:5]) > 100"));
  bench.scenario().symptoms.back().when = {"adamw"};
  Remedy idle = bench.scenario().remedies[0];
  idle.name = "idle";
  idle.resolves = {"stuck"};
  bench.scenario().remedies.push_back(idle);
  bench.scenario().decoys[0].keeps = {"stuck"};
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_THAT(verdict.remarks, Contains(HasSubstr("remedy 'idle' resolves no symptom here")));
  EXPECT_THAT(verdict.remarks, Contains(HasSubstr("decoy 'decay' keeps no symptom here")));
  bench.scenario().remedies.erase(bench.scenario().remedies.begin());
  EXPECT_EQ(Outcome(bench.Judged()), "fail/remedy_ineffective") << "it is the only one";
}

// Expectations.

TEST(ExpectationTest, WhatHappenedStaysWhatItWas) {
  Bench bench;
  EXPECT_EQ(bench.Judged().seen_verdict, VerdictKind::kPass);
  bench.scenario().expect = {VerdictKind::kError, FailureClass::kCrash, "a known limit"};
  bench.In("fault", 0, Crashing(1, 0));
  const Verdict crashed = bench.Judged();
  EXPECT_EQ(Outcome(crashed), "pass");
  EXPECT_EQ(crashed.seen_verdict, VerdictKind::kError);

  Bench skipped;
  skipped.scenario().requires_.features = {"antigravity"};
  skipped.scenario().expect = {VerdictKind::kSkip, FailureClass::kNone, "not yet"};
  const Verdict verdict = skipped.Judged();
  EXPECT_EQ(Outcome(verdict), "pass");
  EXPECT_EQ(verdict.seen_verdict, VerdictKind::kSkip);
  EXPECT_EQ(ExitCode({verdict}), 4) << "nothing was executed";
  EXPECT_EQ(ExitCode({verdict, crashed}), 0);
}

// Undoing by a detour.

TEST(UndoTest, TheFaultIsOutWhateverElseChanges) {
  for (const Changes& changes :
       {Changes{{{"optimizer.lr", 0.1}, {"optimizer.weight_decay", 1e-12}}, {}},
        Changes{{{"optimizer.clip_norm", 1e9}}, {{"optimizer.lr", 1 / 15.0}}},
        Changes{{{"optimizer.lr", 0.1001}}, {}}, Changes{{}, {{"optimizer.lr", 0.067}}}}) {
    Bench bench;
    bench.scenario().remedies[0].changes = changes;
    const Verdict verdict = bench.Judged();
    EXPECT_EQ(Outcome(verdict), "fail/remedy_ineffective");
    EXPECT_THAT(verdict.undo_remedies, ElementsAre("lower_lr"));
  }
}

TEST(UndoTest, APartOfTheFaultIsStillIn) {
  for (double rate : {0.09, 0.11, 0.5, 0.01}) {
    Bench bench;
    bench.scenario().remedies[0].changes = {{{"optimizer.lr", rate}}, {}};
    EXPECT_THAT(bench.Judged().undo_remedies, IsEmpty()) << rate;
  }
}

}  // namespace back_doors_test
}  // namespace trainwreck
