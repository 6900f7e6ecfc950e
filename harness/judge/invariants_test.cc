// Invariants: what breaks one in a sound run, what excuses it, and what `breaks` claims.
#include <gtest/gtest.h>

#include "harness/judge/arm_judge.h"
#include "harness/judge/test_support.h"

namespace trainwreck::testing {
namespace invariants_test {

constexpr char kName[] = "short_steps";

// The invariant: every gradient norm is at most 1. All runs have 0.5, unless a test says otherwise.
struct InvariantBench : Bench {
  InvariantBench() {
    auto parsed = formula::Formula::Parse("always grad_norm <= 1");
    scenario().invariants = std::make_shared<std::vector<Invariant>>(std::vector<Invariant>{
        {kName, "steps are short", "optimizer", {}, {}, *parsed.formula, {4, 3, 5}, "inv.yaml"}});
    meddle = [](const trainwreck::Run& /*run*/, RunResult& result) { SetNorm(result, 0.5); };
  }

  static void SetNorm(RunResult& result, double norm) {
    for (int step = 0; step < kSteps; ++step) {
      result.trace.series[{"grad_norm", 0}].Set(step, norm);
    }
  }
  void Break(const std::string& arm, int seed) {
    In(arm, seed, [](RunResult& result) { SetNorm(result, 2); });
  }
};

const InvariantCount& CountIn(const Verdict& verdict) { return verdict.invariants.at(0); }

TEST(Invariants, ThatHoldAreCountedAndChangeNothing) {
  InvariantBench bench;
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass) << verdict.reason;
  EXPECT_EQ(CountIn(verdict).name, kName);
  EXPECT_EQ(CountIn(verdict).held, 2 * kSeeds) << "control and the remedy";
  EXPECT_EQ(CountIn(verdict).broken, 0);
}

TEST(Invariants, FailTheCaseWhereControlBreaksOne) {
  InvariantBench bench;
  bench.Break("control", 1);
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.failure_class, FailureClass::kInvariantBroken) << verdict.reason;
  EXPECT_NE(verdict.reason.find("steps are short"), std::string::npos) << verdict.reason;
  EXPECT_TRUE(verdict.reason.ends_with("; look at: optimizer")) << verdict.reason;
  EXPECT_NE(verdict.reason.find("seed 1"), std::string::npos);
  EXPECT_EQ(CountIn(verdict).broken, 1);
  const auto broken = std::find_if(verdict.checks.begin(), verdict.checks.end(),
                                   [](const CheckResult& check) { return check.check == kName; });
  ASSERT_NE(broken, verdict.checks.end());
  EXPECT_EQ(broken->file, "inv.yaml");
  EXPECT_EQ(broken->worst_seed, 1);
  EXPECT_EQ(broken->worst_margin, -1);
}

// What every sound run must keep is no matter of luck.
TEST(Invariants, AreLostInNoSeed) {
  InvariantBench bench;
  bench.scenario().seed_require = kSeeds - 1;
  bench.Break("control", 1);
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kInvariantBroken);
}

TEST(Invariants, AreAskedOfRemedies) {
  InvariantBench bench;
  bench.Break("lower_lr", 0);
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kInvariantBroken);
}

// other_seed is the same arm's run with the next seed.
TEST(Invariants, MayCompareTwoSeeds) {
  InvariantBench bench;
  auto parsed = formula::Formula::Parse("eventually grad_norm < other_seed.grad_norm");
  auto invariants = std::make_shared<std::vector<Invariant>>(*bench.scenario().invariants);
  invariants->front().formula = *parsed.formula;
  bench.scenario().invariants = invariants;
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kInvariantBroken) << "all are equal";
  bench.meddle = [](const trainwreck::Run& run, RunResult& result) {
    InvariantBench::SetNorm(result, 0.1 + 0.1 * run.seed);
    if (run.seed == kSeeds - 1) result.trace.series[{"grad_norm", 0}].Set(0, 0.01);
  };
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass) << verdict.reason;
}

// We stopped it: samples of a sparse signal that are not there yet might have come.
TEST(Invariants, OfASeedWhoseNextOneWasStoppedAreOpen) {
  InvariantBench bench;
  bench.target.signals.push_back({.name = "eval_loss", .sparse = true});
  auto parsed = formula::Formula::Parse("last(eval_loss[:]) <= 2 * last(other_seed.eval_loss[:])");
  auto invariants = std::make_shared<std::vector<Invariant>>(*bench.scenario().invariants);
  invariants->front().formula = *parsed.formula;
  bench.scenario().invariants = invariants;
  bench.meddle = [](const trainwreck::Run& run, RunResult& result) {
    const bool is_next = run.arm == "lower_lr" && run.seed == 1;
    result.trace.series[{"eval_loss", 0}].Set(2, is_next ? 0.25 : 1);
    if (!is_next) result.trace.series[{"eval_loss", 0}].Set(kSteps - 1, 1);
  };
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kInvariantBroken) << "the run ended so";
  bench.In("lower_lr", 1, [](RunResult& result) { result.end = RunEnd::kDecided; });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(CountIn(verdict).broken, 0) << verdict.reason;
  EXPECT_GE(CountIn(verdict).open, 1);
}

// The fault stays in while its remedy is tested, and so does what it breaks.
TEST(Invariants, OfARemedyAreExcusedWhereTheFaultAloneBreaksThem) {
  InvariantBench bench;
  bench.Break("lower_lr", -1);
  bench.Break("fault", 0);
  Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.failure_class, FailureClass::kInvariantBroken) << "in the other seeds";
  bench.Break("fault", -1);
  verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass) << verdict.reason;
  EXPECT_EQ(CountIn(verdict).excused, kSeeds);
}

// A fault that ends the run leaves open what it would have broken.
TEST(Invariants, OfARemedyAreExcusedWhereTheFaultLeavesThemOpen) {
  InvariantBench bench;
  bench.Break("lower_lr", -1);
  bench.In("fault", -1, [](RunResult& result) { result.trace.series.erase({"grad_norm", 0}); });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass) << verdict.reason;
  EXPECT_EQ(CountIn(verdict).excused, kSeeds);
}

TEST(Invariants, ThatTheFaultBreaksAreNoExcuseForControl) {
  InvariantBench bench;
  bench.Break("fault", -1);
  bench.Break("control", -1);
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kInvariantBroken);
}

TEST(Invariants, OfARunThatLacksSamplesAreOpen) {
  InvariantBench bench;
  bench.In("control", 2, [](RunResult& result) { result.trace.series.erase({"grad_norm", 0}); });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass) << verdict.reason;
  EXPECT_EQ(CountIn(verdict).open, 1);
}

TEST(Breaks, MustShowInTheFaultArm) {
  InvariantBench bench;
  bench.scenario().breaks = {kName};
  bench.scenario().remedies.clear();
  bench.scenario().no_remedy = "none";
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kSymptomAbsent);
  bench.Break("fault", -1);
  EXPECT_EQ(bench.Judged().verdict, VerdictKind::kPass) << bench.Judged().reason;
}

// Else nothing says that the invariant can hold.
TEST(Breaks, MustBeKnownToHoldInControl) {
  InvariantBench bench;
  bench.scenario().breaks = {kName};
  bench.Break("fault", -1);
  bench.In("control", 1, [](RunResult& result) { result.trace.series.erase({"grad_norm", 0}); });
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kInconclusive);
  EXPECT_NE(verdict.reason.find("it must hold in control"), std::string::npos) << verdict.reason;
  bench.scenario().breaks.clear();
  bench.MakeRuns();
  EXPECT_EQ(bench.Judged().verdict, VerdictKind::kPass) << bench.Judged().reason;
}

// A remedy that resolves all symptoms mends what the fault breaks, too.
TEST(Breaks, MustBeMendedByARemedyOfAllSymptoms) {
  InvariantBench bench;
  bench.scenario().breaks = {kName};
  bench.Break("fault", -1);
  EXPECT_EQ(bench.Judged().verdict, VerdictKind::kPass) << bench.Judged().reason;
  bench.Break("lower_lr", 1);
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kRemedyIneffective);
}

TEST(Breaks, AreEnoughToSayThatControlIsHealthy) {
  InvariantBench bench;
  bench.scenario().healthy.clear();
  bench.MakeRuns();
  EXPECT_FALSE(ClaimsHealthOfControl(bench.cases.front(), bench.target));
  bench.scenario().breaks = {kName};
  bench.MakeRuns();
  EXPECT_TRUE(ClaimsHealthOfControl(bench.cases.front(), bench.target));
}

// All arms record the same signals, so that recording cannot make two of them differ.
TEST(Invariants, AreRecordedInEveryRun) {
  InvariantBench bench;
  bench.MakeRuns();
  for (const ArmPlan& arm : bench.cases.front().arms) {
    for (const trainwreck::Run& run : arm.runs) {
      const auto& record = run.plan.record;
      EXPECT_NE(std::find(record.begin(), record.end(), "grad_norm"), record.end()) << run.id;
    }
  }
}

}  // namespace invariants_test
}  // namespace trainwreck::testing
