// Twins: a change that must not matter agrees with control, and what must be noticed is.
#include <gtest/gtest.h>

#include "harness/judge/arm_judge.h"
#include "harness/judge/test_support.h"

namespace trainwreck::testing {
namespace twins_test {

constexpr char kAgrees[] = "always distance(loss) <= 8 * rounding(loss)";

void Shift(RunResult& run, double by) {
  Series& loss = run.trace.series[{"loss", 0}];
  for (int step = 0; step < kSteps; ++step) loss.Set(step, loss.values[step] * (1 + by));
}

// Control, a twin with the same loss, five draws that are 2^-20 off, and a bug that shows in the
// twin.
struct TwinBench : Bench {
  TwinBench() {
    FaultInfo round;
    round.name = kRoundingFault;
    round.has_trigger = false;
    target.faults.push_back(round);
    Scenario& all = scenario();
    all.faults.clear();
    all.symptoms.clear();
    all.remedies.clear();
    all.decoys.clear();
    all.quality.reset();
    Twin twin;
    twin.name = "twin";
    twin.changes.set = {{"optimizer.weight_decay", 0.1}};
    all.twins.push_back(twin);
    all.agree.push_back(MakeCheck("loss_agrees", kAgrees, "1 octave"));
    all.bugs.push_back(
        {{"hot", "recipe.high_lr", {{"factor", 15.0}}, {}, {4, 1, 1}, ""}, {"twin"}, {}, ""});
    meddle = [](const Run& run, RunResult& result) {
      // RunOf makes all but control as the fault's arms are made.
      result = MakeRun(LearningLoss(1.0));
      if (run.kind == ArmKind::kRounding) {
        AddEvent(result, "fired", -1,
                 {{"id", "rounding"}, {"fault", kRoundingFault}, {"before", 1}, {"after", 2}});
        Shift(result, run.arm == "rounding_2" ? 0x1p-20 : -0x1p-21);
      }
      if (run.kind != ArmKind::kBug) return;
      AddFired(result);
      Shift(result, 0.5);                                    // the bug, in both
      if (run.arm == "hot_in_twin") Shift(result, 0x1p-10);  // what the change makes of it
    };
  }
};

// An invariant that the twin breaks, with and without its leave.
TEST(Twins, MayBreakWhatTheyWaive) {
  for (const bool waives : {false, true}) {
    TwinBench bench;
    bench.scenario().invariants = std::make_shared<std::vector<Invariant>>(
        std::vector<Invariant>{{"small",
                                "losses are small",
                                "loss",
                                {},
                                {},
                                *formula::Formula::Parse("always grad_norm <= 1").formula,
                                {4, 3, 5},
                                "inv.yaml"}});
    if (waives) bench.scenario().twins[0].waives = {"small"};
    const auto meddle = bench.meddle;
    bench.meddle = [meddle](const trainwreck::Run& run, RunResult& result) {
      meddle(run, result);
      for (int step = 0; step < kSteps; ++step) {
        result.trace.series[{"grad_norm", 0}].Set(step, run.arm == "twin" ? 2 : 0.5);
      }
    };
    const Verdict verdict = bench.Judged();
    EXPECT_EQ(verdict.failure_class, waives ? FailureClass::kNone : FailureClass::kInvariantBroken)
        << verdict.reason;
    EXPECT_EQ(verdict.verdict == VerdictKind::kPass, waives) << verdict.reason;
  }
}

TEST(Twins, AgreeWithinRoundingAndTheBugIsNoticed) {
  TwinBench bench;
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass) << verdict.reason;
  std::vector<std::string> arms;
  for (const ArmPlan& arm : bench.cases.front().arms) {
    arms.push_back(std::string(ToString(arm.kind)) + " " + arm.name);
  }
  EXPECT_EQ(arms, (std::vector<std::string>{"control control", "twin twin", "rounding rounding_1",
                                            "rounding rounding_2", "rounding rounding_3",
                                            "rounding rounding_4", "rounding rounding_5", "bug hot",
                                            "bug hot_in_twin"}));
  // The bug is 2^-10 * (1.5 / 1) of its control; the envelope is 8 * 2^-20 of the true one.
  for (const CheckResult& check : verdict.checks) {
    if (check.check != "notices") continue;
    EXPECT_NEAR(*check.worst_margin, 7 + std::log2(1.5), 0.01);
  }
}

TEST(Twins, OneThatDiffersFailsAndSaysWhere) {
  TwinBench bench;
  bench.In("twin", 1, [](RunResult& run) {
    run.trace.series[{"loss", 0}].Set(7, 1.001 * run.trace.series[{"loss", 0}].values[7]);
  });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kFail);
  EXPECT_EQ(verdict.failure_class, FailureClass::kTwinsDiffer);
  EXPECT_NE(verdict.reason.find("'loss_agrees' in twin"), std::string::npos) << verdict.reason;
  EXPECT_NE(verdict.reason.find("(step 7)"), std::string::npos) << verdict.reason;
  EXPECT_NE(
      verdict.reason.find("twin 'twin' must agree with control in 3 of 3 seeds, differs in 1"),
      std::string::npos)
      << verdict.reason;
}

// By less than the margin is not agreeing clearly.
TEST(Twins, OneThatIsNearlyOutsideFails) {
  TwinBench bench;
  bench.In("twin", 0, [](RunResult& run) { Shift(run, 5 * 0x1p-20); });
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kTwinsDiffer);
}

TEST(Twins, ARelationThatMissesABugFails) {
  TwinBench bench;
  bench.In("hot_in_twin", -1, [](RunResult& run) { Shift(run, -0x1p-10); });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kFail);
  EXPECT_EQ(verdict.failure_class, FailureClass::kBugUnnoticed) << verdict.reason;
  EXPECT_NE(verdict.reason.find("with 'hot' planted in both, twin 'twin' must differ from control"),
            std::string::npos)
      << verdict.reason;
}

// What was noticed by chance, just outside the envelope, is not noticed.
TEST(Twins, ABugThatIsHardlyNoticedFails) {
  TwinBench bench;
  bench.In("hot_in_twin", 2, [](RunResult& run) { Shift(run, -0x1p-10 + 9 * 0x1p-20); });
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kBugUnnoticed);
}

TEST(Twins, ABugThatDidNothingIsNotCounted) {
  TwinBench bench;
  for (const char* arm : {"hot", "hot_in_twin"}) {
    bench.In(arm, -1, [](RunResult& run) { run.trace.events.clear(); });
  }
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kFaultNotFired);
}

// It may act in one of the two alone: a change brings it out.
TEST(Twins, ABugMayRestInControl) {
  TwinBench bench;
  bench.In("hot", -1, [](RunResult& run) { run.trace.events.clear(); });
  EXPECT_EQ(bench.Judged().verdict, VerdictKind::kPass);
}

// In one of the two, whatever the other one does.
TEST(Twins, ABugWhoseHookFailedIsUnknown) {
  const auto fail = [](RunResult& run) {
    run.trace.events.clear();
    AddEvent(run, "hook_failed", 3, {{"hook", "faults"}, {"why", "KeyError()"}});
  };
  const auto rest = [](RunResult& run) { run.trace.events.clear(); };
  for (const bool fires_in_twin : {true, false}) {
    TwinBench bench;
    bench.target.faults[0].hooks = {"faults"};
    bench.In("hot", -1, fail);
    if (!fires_in_twin) bench.In("hot_in_twin", -1, rest);
    EXPECT_EQ(Outcome(bench.Judged()), "inconclusive/undecided") << fires_in_twin;
  }
  TwinBench bench;
  bench.target.faults[0].hooks = {"faults"};
  bench.In("hot", -1, rest);
  bench.In("hot_in_twin", -1, fail);
  EXPECT_EQ(Outcome(bench.Judged()), "inconclusive/undecided");
}

// It is the run in one piece, which says nothing of a checkpoint.
TEST(Twins, ATwinThatBeganAnewHasNotGoneOn) {
  const auto begin_anew = [](RunResult& run) { AddEvent(run, "began_anew", 0, {{"rank", 0}}); };
  TwinBench bench;
  bench.scenario().twins[0].phases = {{"train", 5}, {"resume", std::nullopt}};
  EXPECT_EQ(Outcome(bench.Judged()), "pass");
  bench.In("twin", 1, begin_anew);
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), "fail/fault_not_fired");
  EXPECT_NE(verdict.reason.find("not begin at step 0, in seed 1"), std::string::npos)
      << verdict.reason;
  TwinBench in_one_piece;
  in_one_piece.In("twin", 1, begin_anew);
  EXPECT_EQ(Outcome(in_one_piece.Judged()), "pass") << "its program made step 0 twice";
}

TEST(Twins, DrawsThatDidNotActMakeNoEnvelope) {
  TwinBench bench;
  bench.In("rounding_3", -1, [](RunResult& run) { run.trace.events.clear(); });
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kFaultNotFired);
}

TEST(Twins, ATwinThatDiedIsAnError) {
  TwinBench bench;
  bench.In("twin", 0, [](RunResult& run) {
    run.end = RunEnd::kFailed;
    run.exits = {{.rank = 0, .attempt = 0, .phase = "", .code = 1, .last_words = "boom"}};
  });
  EXPECT_EQ(bench.Judged().verdict, VerdictKind::kError);
}

TEST(Twins, MayStandBesideAFault) {
  TwinBench bench;
  const Scenario whole = TestScenario();
  bench.scenario().faults = whole.faults;
  bench.scenario().symptoms = whole.symptoms;
  bench.scenario().remedies = whole.remedies;
  bench.MakeRuns();
  std::set<std::string> arms;
  for (const ArmPlan& arm : bench.cases.front().arms) arms.insert(arm.name);
  EXPECT_TRUE(arms.contains("fault") && arms.contains("twin") && arms.contains("hot_in_twin"));
}

}  // namespace twins_test
}  // namespace trainwreck::testing
