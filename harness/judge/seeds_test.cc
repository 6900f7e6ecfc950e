// Claims that are read over all seeds of an arm, and scenarios whose runs all have one seed.
#include <gtest/gtest.h>

#include "harness/judge/test_support.h"

namespace trainwreck::testing {
namespace seeds_test {

constexpr int kMany = 8;
constexpr double kApart[kMany] = {0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4, 0.5};

// The runs of the fault differ ten times as much by their seed as those of control.
struct SpreadBench : Bench {
  SpreadBench() {
    scenario().seed_count = scenario().seed_require = kMany;
    scenario().symptoms = {MakeCheck("differs", "seed_spread(mean(loss[-5:])) > 3")};
    scenario().decoys.clear();
    meddle = [this](const trainwreck::Run& run, RunResult& result) {
      const double factor = run.arm == "fault" ? 10 : run.arm == "lower_lr" ? of_remedy : 1;
      const double loss =
          1 + 0.02 * factor * kApart[run.arm == "control" ? run.seed : (run.seed + 3) % kMany];
      WithLoss(LearningLoss(loss))(result);
    };
  }
  double of_remedy = 1;
};

TEST(ClaimsOverSeeds, HoldInAllSeedsOrInNone) {
  SpreadBench bench;
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass) << verdict.reason;
  for (const CheckResult& check : verdict.checks) {
    if (check.check != "differs") continue;
    EXPECT_EQ(check.agree, kMany) << check.arm;
    EXPECT_EQ(check.unit, formula::Unit::kOctave);
  }
}

TEST(ClaimsOverSeeds, FailWhereARemedyLeavesTheSpread) {
  SpreadBench bench;
  bench.of_remedy = 10;
  EXPECT_EQ(bench.Judged().failure_class, FailureClass::kRemedyIneffective);
}

TEST(ClaimsOverSeeds, AreOpenWhereASeedIsMissing) {
  SpreadBench bench;
  bench.MakeRuns();
  bench.results.runs["fault"].erase(2);
  EXPECT_NE(Judge(bench.results, bench.target).verdict, VerdictKind::kPass);
}

TEST(RepeatedSeeds, AreOneSeedWithoutAnother) {
  SpreadBench bench;
  bench.scenario().repeats_seed = true;
  auto parsed = formula::Formula::Parse("eventually loss != other_seed.loss");
  bench.scenario().invariants = std::make_shared<std::vector<Invariant>>(std::vector<Invariant>{
      {"other", "seeds matter", "sampler", {}, {}, *parsed.formula, {4, 3, 5}, "inv.yaml"}});
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(verdict.verdict, VerdictKind::kPass) << verdict.reason;
  for (const ArmPlan& arm : bench.cases.front().arms) {
    for (const trainwreck::Run& run : arm.runs) EXPECT_EQ(run.plan.seed, 0U) << run.id;
  }
  EXPECT_NE(bench.cases.front().arms[0].runs[1].id, bench.cases.front().arms[0].runs[2].id);
}

}  // namespace seeds_test
}  // namespace trainwreck::testing
