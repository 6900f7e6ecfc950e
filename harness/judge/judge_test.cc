#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/arm_judge.h"
#include "harness/judge/test_support.h"
#include "harness/judge/verdict.h"

namespace trainwreck {
namespace judge_test {

using testing::AddEvent;
using testing::Bench;
using testing::EndingWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LearningLoss;
using testing::MakeCheck;
using testing::Outcome;
using testing::WithLoss;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const CheckResult& Find(const Verdict& verdict, const std::string& check, const std::string& arm) {
  for (const CheckResult& result : verdict.checks) {
    if (result.check == check && result.arm == arm) return result;
  }
  throw std::runtime_error("no check " + check + " in " + arm);
}

TEST(JudgeTest, PassesWhenEveryClaimHolds) {
  Bench bench;
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_FALSE(verdict.expected_limit);
  EXPECT_EQ(verdict.checks.size(), 10u);  // 2 control, 2 fault, 4 remedy, 2 decoy, with `fired`
  for (const CheckResult& check : verdict.checks) {
    EXPECT_EQ(check.agree, testing::kSeeds) << check.check << " " << check.arm;
    EXPECT_THAT(check.rerun_command, IsEmpty());
  }
  ASSERT_TRUE(verdict.worst_margin.has_value());
  EXPECT_GT(*verdict.worst_margin, 0);
  EXPECT_DOUBLE_EQ(verdict.wall_seconds, 4 * 3 * 0.5);
}

TEST(JudgeTest, KOfNSeedsTolerateTheirShareAndNoMore) {
  for (int absent = 0; absent <= 2; ++absent) {
    Bench bench;
    bench.scenario().seed_count = 10;
    bench.scenario().seed_require = 9;
    for (int seed = 0; seed < absent; ++seed) {
      bench.In("fault", seed, WithLoss(LearningLoss(1)));
    }
    EXPECT_EQ(Outcome(bench.Judged()), absent <= 1 ? "pass" : "fail/symptom_absent") << absent;
  }
}

TEST(JudgeTest, UnknownSeedsBeyondTheShareAreUndecidedNotFailed) {
  Bench bench;
  bench.scenario().seed_count = 10;
  bench.scenario().seed_require = 9;
  std::vector<double> cut = LearningLoss(4);
  cut.resize(6);
  bench.In("fault", 0, WithLoss(cut));
  bench.In("fault", 0, EndingWith(RunEnd::kDecided));
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  bench.In("fault", 1, WithLoss(LearningLoss(4)));
  EXPECT_EQ(Outcome(bench.Judged()), "inconclusive/undecided");
  bench.In("fault", 2, WithLoss(LearningLoss(4)));
  EXPECT_EQ(Outcome(bench.Judged()), "fail/symptom_absent");
}

TEST(JudgeTest, ARemedyIsHeldToTheSeedsWhoseFaultArmShowsTheSymptom) {
  Bench bench;
  bench.scenario().seed_count = 3;
  bench.scenario().seed_require = 2;
  bench.In("fault", 0, WithLoss(LearningLoss(1)));
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_EQ(Find(verdict, "blows_up", "lower_lr").agree, 2);
}

TEST(JudgeTest, ResolvesKeepsAndWaivesLimitTheClaims) {
  Bench bench;
  bench.scenario().symptoms.push_back(MakeCheck("never_below_2", "min(loss[:5]) > 2"));
  bench.scenario().healthy.push_back(MakeCheck("ends_below_2", "mean(loss[-2:]) < 2"));
  bench.scenario().remedies[0].resolves = {"blows_up"};
  bench.scenario().remedies[0].waives = {"quality", "ends_below_2"};
  bench.scenario().decoys[0].keeps = {"blows_up"};
  bench.In("lower_lr", -1, WithLoss(LearningLoss(2.2)));
  bench.In("control", -1, [](RunResult& run) { run.trace.series[{"loss", 0}].Set(4, 1.5); });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_THROW(Find(verdict, "quality", "lower_lr"), std::runtime_error);
  EXPECT_THROW(Find(verdict, "ends_below_2", "lower_lr"), std::runtime_error);
  EXPECT_THROW(Find(verdict, "never_below_2", "lower_lr"), std::runtime_error);
  EXPECT_THROW(Find(verdict, "never_below_2", "decay"), std::runtime_error);
  EXPECT_NO_THROW(Find(verdict, "never_below_2", "control"));
}

TEST(JudgeTest, ChecksOfOtherPointsDoNotApply) {
  Bench bench;
  bench.scenario().points[0].name = "sgd";
  bench.scenario().symptoms.push_back(MakeCheck("stuck", "min(loss[:5]) > 100"));
  bench.scenario().symptoms.back().when = {"adamw*"};
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_EQ(verdict.case_name, "nan/test[sgd]");
}

TEST(JudgeTest, AnUndoIsReportedAndNotRun) {
  Bench bench;
  Remedy undo = bench.scenario().remedies[0];
  undo.name = "as_it_was";
  undo.changes = {{}, {{"optimizer.lr", 1.0 / 15}}};
  bench.scenario().remedies.push_back(undo);
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_EQ(verdict.undo_remedies, std::vector<std::string>{"as_it_was"});
  EXPECT_FALSE(verdict.runs.contains("as_it_was"));
}

TEST(JudgeTest, AScenarioMaySayWhyItHasNoRemedy) {
  Bench bench;
  bench.scenario().remedies.clear();
  bench.scenario().no_remedy = "nothing helps but another machine";
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
}

TEST(JudgeTest, AnExpectedFailurePassesAndSaysSo) {
  Bench bench;
  bench.scenario().expect = {VerdictKind::kFail, FailureClass::kSymptomAbsent,
                             "the detector is blind here"};
  bench.In("fault", -1, WithLoss(LearningLoss(1)));
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass");
  EXPECT_TRUE(verdict.expected_limit);
  EXPECT_THAT(verdict.reason, HasSubstr("the detector is blind here"));
  EXPECT_EQ(Find(verdict, "blows_up", "fault").failure_class, FailureClass::kSymptomAbsent);
}

// A scenario about a hang: the symptom is the way in which the run ends.
Bench HangBench() {
  Bench bench;
  bench.scenario().symptoms = {MakeCheck("hangs", "eventually stalled(lagging_rank=1)")};
  auto hang = [](RunResult& run) {
    run.end = RunEnd::kStalled;
    AddEvent(run, "stalled", 5, {{"waiting_rank", 0}, {"lagging_rank", 1}});
  };
  bench.In("fault", -1, hang);
  bench.In("decay", -1, hang);
  return bench;
}

TEST(JudgeTest, AnEndThatASymptomClaimsIsNoError) {
  Bench bench = HangBench();
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
}

TEST(JudgeTest, AnAbsentSymptomAboutEndingsExcusesNoEnding) {
  Bench crashing_remedy = HangBench();
  crashing_remedy.In("lower_lr", 1, EndingWith(RunEnd::kFailed));
  EXPECT_EQ(Outcome(crashing_remedy.Judged()), "error/crash");
  Bench crashing_control = HangBench();
  crashing_control.In("control", 1, EndingWith(RunEnd::kFailed));
  EXPECT_EQ(Outcome(crashing_control.Judged()), "error/crash");
}

TEST(JudgeTest, ARemedyThatStillHangsIsIneffective) {
  Bench bench = HangBench();
  bench.In("lower_lr", -1, [](RunResult& run) {
    run.end = RunEnd::kStalled;
    AddEvent(run, "stalled", 5, {{"waiting_rank", 0}, {"lagging_rank", 1}});
  });
  EXPECT_EQ(Outcome(bench.Judged()), "fail/remedy_ineffective");
}

TEST(JudgeTest, ALeakIsAlwaysAnError) {
  Bench bench = HangBench();
  bench.In("fault", 0, EndingWith(RunEnd::kLeak));
  EXPECT_EQ(Outcome(bench.Judged()), "error/leak");
}

TEST(JudgeTest, AFailureSaysWhatWhereAndHowToRepeatIt) {
  Bench bench;
  bench.scenario().points[0].name = "sgd";
  bench.In("fault", 2, WithLoss(LearningLoss(1)));
  Verdict verdict = bench.Judged();
  const CheckResult& check = Find(verdict, "blows_up", "fault");
  EXPECT_EQ(check.message, "expected true in 3 of 3 seeds, seen false in 1 (seed 2)");
  EXPECT_EQ(check.position.line, 7);
  EXPECT_EQ(check.file, "scenarios/nan/test.yaml");
  EXPECT_EQ(check.worst_seed, 2);
  EXPECT_EQ(check.rerun_command,
            "trainwreck run scenarios/nan/test.yaml --arm fault --seed 2 --point sgd");
  ASSERT_TRUE(check.worst_margin.has_value());
  EXPECT_LT(*check.worst_margin, 0);
  EXPECT_THAT(verdict.reason, HasSubstr("'blows_up' in fault"));
  EXPECT_EQ(verdict.worst_margin, check.worst_margin);

  bench.In("fault", 2, [](RunResult& run) { run.folder = "/tmp/out dir/nan/test/fault/2"; });
  verdict = bench.Judged();
  EXPECT_EQ(Find(verdict, "blows_up", "fault").rerun_command,
            "trainwreck rerun '/tmp/out dir/nan/test/fault/2'");
  EXPECT_EQ(Find(verdict, "blows_up", "fault").evidence, "");
}

TEST(JudgeTest, AFailureNamesTheEvidenceOfTheRunToLookAt) {
  Bench bench;
  bench.In("fault", 2, [](RunResult& run) {
    WithLoss(LearningLoss(1))(run);
    run.trace.events.push_back({.name = "evidence_saved",
                                .step = 3,
                                .rank = 1,
                                .fields = {{"folder", "/tmp/out/fault/2/evidence-rank1"}}});
  });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Find(verdict, "blows_up", "fault").evidence, "/tmp/out/fault/2/evidence-rank1");
  EXPECT_EQ(Find(verdict, "learns", "control").evidence, "") << "as claimed, nothing to look into";
}

TEST(JudgeTest, MarginsAreSignedTowardsTheClaim) {
  Bench bench;
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(*Find(verdict, "blows_up", "fault").worst_margin, 5);  // step 5, window to 10
  EXPECT_EQ(Find(verdict, "blows_up", "fault").unit, formula::Unit::kStep);
  EXPECT_GT(*Find(verdict, "blows_up", "control").worst_margin, 0);
  EXPECT_GT(*Find(verdict, "learns", "control").worst_margin, 0);
  EXPECT_EQ(Find(verdict, "learns", "control").unit, formula::Unit::kOctave);
}

TEST(JudgeTest, SummarizesTheMedianRunOfEachArm) {
  Bench bench;
  bench.In("control", 0, WithLoss(LearningLoss(1.2)));
  bench.In("control", 1, WithLoss(LearningLoss(0.8)));
  const Verdict verdict = bench.Judged();
  ASSERT_EQ(verdict.arms.size(), 4u);
  EXPECT_EQ(verdict.arms[0].arm, "control");
  EXPECT_EQ(verdict.arms[0].median_seed, 2);
  EXPECT_EQ(verdict.arms[0].final_loss, 1.0);
  EXPECT_EQ(verdict.arms[0].loss.size(), 20u);
  EXPECT_EQ(verdict.arms[0].status, ArmStatus::kOk);
  EXPECT_TRUE(std::isnan(verdict.arms[1].final_loss));
}

TEST(JudgeTest, TheStatusOfAnArmIsTheWorstOfItsChecks) {
  Bench bench;
  bench.In("fault", 2, WithLoss(LearningLoss(1)));
  bench.In("lower_lr", 0, EndingWith(RunEnd::kLeak));
  std::vector<double> cut = LearningLoss(4);
  cut.resize(8);
  bench.In("decay", 0, WithLoss(cut));
  bench.In("decay", 0, EndingWith(RunEnd::kDecided));
  const Verdict verdict = bench.Judged();
  ASSERT_EQ(verdict.arms.size(), 4u);
  EXPECT_EQ(verdict.arms[0].status, ArmStatus::kOk);
  EXPECT_EQ(verdict.arms[1].status, ArmStatus::kFail);
  EXPECT_EQ(verdict.arms[2].status, ArmStatus::kError);
  EXPECT_EQ(verdict.arms[3].status, ArmStatus::kUndecided);
}

TEST(JudgeTest, SummariesHoldAtMost200PointsWithBothEnds) {
  Bench bench;
  bench.In("control", -1, [](RunResult& run) {
    for (int step = 0; step < 1001; ++step) run.trace.series[{"loss", 0}].Set(step, step);
  });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.arms[0].steps.size(), 200u);
  EXPECT_EQ(verdict.arms[0].steps.front(), 0);
  EXPECT_EQ(verdict.arms[0].steps.back(), 1000);
}

TEST(JudgeTest, RunsThatWereNotMadeLeaveTheCaseUndecided) {
  Bench bench;
  bench.MakeRuns();
  bench.results.runs["decay"].erase(1);
  EXPECT_EQ(Outcome(Judge(bench.results, bench.target)), "inconclusive/undecided");
}

TEST(JudgeTest, ACaseIsJudgedWhenItsScenariosAreGone) {
  Bench bench;
  bench.MakeRuns();
  bench.scenarios.front() = Scenario();
  bench.scenarios.clear();
  bench.scenarios.shrink_to_fit();
  const Verdict verdict = Judge(bench.results, bench.target);
  EXPECT_EQ(Outcome(verdict), "pass") << verdict.reason;
  EXPECT_EQ(verdict.case_name, "nan/test");
  EXPECT_EQ(verdict.checks.size(), Bench().Judged().checks.size());
}

TEST(JudgeTest, ClaimsSayWhichPartOfTheScenarioTheyAreAndOutliveTheirCase) {
  Bench bench;
  bench.MakeRuns();
  std::vector<Claim> claims;
  for (const ArmPlan& arm : bench.cases.front().arms) {
    for (const Claim& claim : ClaimsOf(bench.cases.front(), arm)) claims.push_back(claim);
  }
  bench.cases.clear();
  bench.scenarios.clear();
  std::string said;
  for (const Claim& claim : claims) {
    said += std::string(ToString(claim.role)) + ":" + claim.check->name + " ";
  }
  EXPECT_EQ(said,
            "healthy:learns symptom:blows_up symptom:blows_up symptom:blows_up healthy:learns "
            "quality:quality symptom:blows_up ");
}

TEST(CompareTracesTest, FindsTheFirstDifferenceAndIgnoresTimes) {
  RunResult a = testing::MakeRun(LearningLoss(1));
  RunResult b = testing::MakeRun(LearningLoss(1));
  b.trace.series[{"step_s", 0}].Set(3, 0.5);
  b.trace.series[{"memory_bytes", 0}].Set(3, 1);
  b.trace.series[{"time", 0}].Set(3, 1);
  EXPECT_EQ(CompareTraces(a.trace, b.trace), "");
  b.trace.series[{"loss", 0}].Set(12, std::nextafter(a.trace.Find("loss", 0)->values[12], 9));
  b.trace.series[{"grad_norm", 0}].Set(15, 1);
  EXPECT_THAT(CompareTraces(a.trace, b.trace), HasSubstr("loss at step 12 of rank 0: "));
  b.trace.series[{"grad_norm", 0}].Set(2, 1);
  EXPECT_EQ(CompareTraces(a.trace, b.trace), "grad_norm at step 2 of rank 0: nothing and 1");
}

TEST(CompareTracesTest, NanEqualsNanAndZerosHaveSigns) {
  RunResult a = testing::MakeRun({kNan, 0.0});
  RunResult b = testing::MakeRun({kNan, 0.0});
  EXPECT_EQ(CompareTraces(a.trace, b.trace), "");
  b.trace.series[{"loss", 0}].Set(1, -0.0);
  EXPECT_EQ(CompareTraces(a.trace, b.trace), "loss at step 1 of rank 0: 0 and -0");
}

TEST(ExitCodeTest, FollowsTheWorst) {
  auto code = [](std::vector<std::string> names) {
    std::vector<Verdict> verdicts;
    for (std::string& name : names) {
      verdicts.emplace_back();
      verdicts.back().verdict = *FindVerdict(name);
    }
    return ExitCode(verdicts);
  };
  EXPECT_EQ(code({}), 4);
  EXPECT_EQ(code({"skip", "skip"}), 4);
  EXPECT_EQ(code({"pass", "skip"}), 0);
  EXPECT_EQ(code({"pass", "inconclusive"}), 5);
  EXPECT_EQ(code({"pass", "inconclusive", "error"}), 7);
  EXPECT_EQ(code({"pass", "inconclusive", "error", "fail"}), 1);
}

}  // namespace judge_test
}  // namespace trainwreck
