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
using testing::Crashing;
using ::testing::ElementsAre;
using testing::ExplodingLoss;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kBlowUpStep;
using testing::LearningLoss;
using testing::MakeCheck;
using ::testing::Not;
using testing::Outcome;
using testing::WithLoss;

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
    bench.In(arm, 1, [](RunResult& run) {
      run.restarts = 1;
      AddEvent(run, "restarted", 9, {{"why", "rank 1 was killed by SIGABRT"}});
    });
    const Verdict verdict = bench.Judged();
    EXPECT_EQ(Outcome(verdict), "fail/control_unhealthy") << arm;
    EXPECT_THAT(verdict.reason, HasSubstr("needs no restart, seed 1 had one"));
    EXPECT_THAT(verdict.reason, HasSubstr("1 restarts: rank 1 was killed by SIGABRT"));
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

TEST(RemarksTest, AProgramThatMayRefuseTheSetting) {
  Bench bench;
  bench.scenario().symptoms[0] = MakeCheck("dies", "exited(code=1)");
  const auto is_refused = Contains(HasSubstr("ended before its first step"));
  for (const char* arm : {"fault", "decay"}) bench.In(arm, -1, Crashing(1, 0));
  EXPECT_THAT(bench.Judged().remarks, Not(is_refused));
  bench.In("fault", 1, [](RunResult& run) { run.trace.time_s.clear(); });
  EXPECT_THAT(bench.Judged().remarks, is_refused);
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
