#include "harness/matrix/matrix.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/test_support.h"
#include "harness/pages/pages.h"

namespace trainwreck {
namespace matrix_test {

using testing::Bench;
using testing::ExplodingLoss;
using testing::LearningLoss;
using testing::MakeCheck;
using testing::MakeRun;

// Two scenarios, nan/test and nan/other, each with symptoms that a test gives.
struct Suite {
  Bench bench;
  std::vector<std::vector<double>> fault, control;  // loss by scenario and seed
  TargetDescription& target() { return bench.target; }

  Suite() {
    bench.scenarios.push_back(bench.scenarios.front());
    bench.scenarios[1].name = "nan/other";
    for (Scenario& scenario : bench.scenarios) scenario.symptoms.clear();
  }

  void AddSymptom(int scenario, const std::string& name, const std::string& formula) {
    bench.scenarios[scenario].symptoms.push_back(MakeCheck(name, formula));
  }

  // `loss` of an arm's run.
  Matrix Read(const std::function<std::vector<double>(int scenario, ArmKind kind, int seed)>& loss,
              int seeds = 3) {
    bench.options.seeds = seeds;
    bench.cases = PlanCases(bench.scenarios, bench.target, bench.options);
    Matrix matrix;
    matrix.symptoms = SymptomsOf(bench.cases);
    for (int c = 0; c < 2; ++c) {
      std::map<std::string, std::map<int, RunResult>> runs;
      ArmTraces traces;
      for (int seed = 0; seed < seeds; ++seed) {
        for (ArmKind kind : {ArmKind::kControl, ArmKind::kFault}) {
          const std::string arm = ToString(kind);
          runs[arm][seed] = MakeRun(loss(c, kind, seed));
          traces[arm][seed] = &runs[arm][seed].trace;
        }
      }
      matrix.columns.push_back(ReadColumn(bench.cases[c], traces, matrix.symptoms, bench.target));
    }
    return matrix;
  }
};

// The fault of the first scenario explodes, that of the second stays where it is.
std::vector<double> TwoFaults(int scenario, ArmKind kind, int) {
  if (kind == ArmKind::kControl) return LearningLoss(1);
  return scenario == 0 ? ExplodingLoss(5) : LearningLoss(4);
}

std::string Text(const Count& count) {
  return std::to_string(count.holds) + " " + std::to_string(count.fails) + " " +
         std::to_string(count.unknown);
}

TEST(Matrix, ReadsEverySymptomOverEveryFaultAndControl) {
  Suite suite;
  suite.AddSymptom(0, "explodes", "eventually nonfinite(loss)");
  suite.AddSymptom(1, "stuck", "mean(loss[-5:]) > 0.9 * mean(loss[:5])");
  const Matrix matrix = suite.Read(TwoFaults);
  EXPECT_EQ(Text(matrix.columns[0].fault[0]), "3 0 0");
  EXPECT_EQ(Text(matrix.columns[1].fault[0]), "0 3 0");
  EXPECT_EQ(Text(matrix.columns[0].fault[1]), "0 0 3") << "the end is NaN: not false, unknown";
  EXPECT_EQ(Text(matrix.columns[1].fault[1]), "3 0 0");
  for (const MatrixColumn& column : matrix.columns) {
    for (const Count& count : column.control) EXPECT_EQ(Text(count), "0 3 0");
  }
  EXPECT_TRUE(matrix.columns[0].is_own[0]);
  EXPECT_FALSE(matrix.columns[0].is_own[1]);
  EXPECT_TRUE(PairsNotSeparated(matrix).empty());
}

TEST(Matrix, WhatDoesNotFitIsUnknownAndNotFalse) {
  Suite suite;
  suite.bench.scenarios[0].recipe.set = {{"steps", 40}};
  suite.AddSymptom(0, "late", "loss[30] > 1");                         // the other has 20 steps
  suite.AddSymptom(0, "no_module", "always grad_norm{head} < 1");      // nobody has modules
  suite.AddSymptom(0, "no_arm", "loss[1] > 1.1 * reference.loss[1]");  // nobody has a reference
  suite.AddSymptom(0, "another_fault", "not fired(hot)");
  suite.bench.scenarios[1].faults[0].id = "cold";
  const Matrix matrix = suite.Read(TwoFaults);
  for (const Count& count : matrix.columns[1].fault) EXPECT_EQ(Text(count), "0 0 3");
  for (const Count& count : matrix.columns[1].control) EXPECT_EQ(Text(count), "0 0 3");
}

TEST(Matrix, ComparesControlWithTheControlOfAnotherSeed) {
  Suite suite;
  suite.AddSymptom(0, "worse", "mean(loss[-5:]) > 1.5 * control.mean(loss[-5:])");
  const auto losses = [](int, ArmKind, int seed) { return LearningLoss(seed == 1 ? 3 : 1); };
  // Seed 0 is compared with 1, 1 with 2, 2 with 0: only seed 1 is worse.
  const Matrix matrix = suite.Read(losses);
  EXPECT_EQ(Text(matrix.columns[0].control[0]), "1 2 0");
  EXPECT_EQ(Text(matrix.columns[0].fault[0]), "0 3 0") << "the fault with control of its seed";
  const FalsePositives all = FalsePositivesOf(matrix);
  EXPECT_EQ(all.alarmed_runs, 2);
  EXPECT_EQ(all.control_runs, 6);
  ASSERT_EQ(all.cells.size(), 2u);
  EXPECT_EQ(all.cells[0].count.holds, 1);
  EXPECT_EQ(all.readings, 2);
  EXPECT_EQ(all.known_readings, 6);

  const Matrix alone = suite.Read(losses, /*seeds=*/1);
  EXPECT_EQ(Text(alone.columns[0].control[0]), "0 0 1") << "nothing to compare with";
}

TEST(Matrix, DoesNotPairRunsOfDifferentSeeds) {
  Suite suite;
  suite.AddSymptom(0, "departs", "eventually abs(loss - control.loss) > 0.05");
  const auto losses = [](int, ArmKind, int seed) { return LearningLoss(seed == 1 ? 3 : 1); };
  const Matrix matrix = suite.Read(losses);
  EXPECT_EQ(Text(matrix.columns[0].control[0]), "0 0 3") << "seeds differ, not what they do";
  EXPECT_EQ(Text(matrix.columns[0].fault[0]), "0 3 0") << "the fault has control of its seed";
}

TEST(Matrix, ARunWithTwoAlarmsIsOneAlarmedRun) {
  Suite suite;
  suite.AddSymptom(0, "a", "loss[0] > 1");
  suite.AddSymptom(0, "b", "loss[0] > 2");
  const FalsePositives all = FalsePositivesOf(suite.Read(TwoFaults));
  EXPECT_EQ(all.alarmed_runs, 6);
  EXPECT_EQ(all.readings, 12);
  EXPECT_EQ(all.upper_bound, 1);
}

// Clopper and Pearson in closed form at the ends: 1 - 0.05^(1/n) for none of n.
TEST(Matrix, BoundsTheRateFromAbove) {
  EXPECT_NEAR(UpperBound(0, 480, 0.95), 1 - std::pow(0.05, 1.0 / 480), 1e-12);
  EXPECT_NEAR(UpperBound(0, 20, 0.95), 0.13911, 1e-5);
  EXPECT_NEAR(UpperBound(1, 2, 0.95), std::sqrt(0.95), 1e-12);  // p^2 = 0.95
  EXPECT_EQ(UpperBound(3, 3, 0.95), 1);
  EXPECT_EQ(UpperBound(0, 0, 0.95), 1);
}

TEST(Matrix, ListsFaultsThatNoSymptomSeparates) {
  Suite suite;
  suite.AddSymptom(0, "explodes", "eventually nonfinite(loss)");
  suite.AddSymptom(1, "explodes_too", "eventually[:15] nonfinite(loss)");
  const auto same = [](int, ArmKind kind, int) {
    return kind == ArmKind::kControl ? LearningLoss(1) : ExplodingLoss(5);
  };
  std::vector<FaultPair> pairs = PairsNotSeparated(suite.Read(same));
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_FALSE(pairs[0].only_unreadable);
  // Two points of one scenario are one fault.
  Suite points = suite;
  points.bench.scenarios[1].name = points.bench.scenarios[0].name;
  EXPECT_TRUE(PairsNotSeparated(points.Read(same)).empty());
  // A seed that disagrees separates nothing, unless the scenario lets one disagree.
  const auto mostly = [](int scenario, ArmKind kind, int seed) {
    if (kind == ArmKind::kControl) return LearningLoss(1);
    return scenario == 0 || seed == 2 ? ExplodingLoss(5) : LearningLoss(1);
  };
  EXPECT_EQ(PairsNotSeparated(suite.Read(mostly)).size(), 1u);
  suite.bench.scenarios[1].seed_require = 2;
  EXPECT_EQ(PairsNotSeparated(suite.Read(mostly)).size(), 0u);
}

TEST(Matrix, SaysWherePairsCouldNotBeRead) {
  Suite suite;
  suite.AddSymptom(0, "high_end", "mean(loss[-5:]) > 3");  // unknown where the end is NaN
  const std::vector<FaultPair> pairs = PairsNotSeparated(suite.Read(TwoFaults));
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_TRUE(pairs[0].only_unreadable);
}

TEST(Matrix, ReportsTheSameToProgramsAndPeople) {
  Suite suite;
  suite.AddSymptom(0, "explodes", "eventually nonfinite(loss)");
  suite.AddSymptom(0, "low", "loss[-1] < 2");
  Matrix matrix = suite.Read(TwoFaults);
  matrix.columns[1].name = "nan/<other>";
  matrix.skipped["nan/gpu"] = "requires:device:cuda";
  const Json json = ToJson(matrix);
  EXPECT_EQ(json.at("schema"), "trainwreck/matrix");
  EXPECT_EQ(json.at("version"), 1);
  EXPECT_EQ(json.at("symptoms")[0].at("cells")[0].at("fault"), Json({3, 0, 0}));
  EXPECT_EQ(json.at("false_positives").at("alarmed_control_runs"), 6);
  EXPECT_EQ(json.at("false_positives").at("cells").size(), 2u);
  EXPECT_EQ(json.at("skipped").at("nan/gpu"), "requires:device:cuda");
  const std::string text = ToText(matrix);
  EXPECT_NE(text.find("6 of 6 control runs show a symptom"), std::string::npos) << text;
  EXPECT_NE(text.find("FALSE POSITIVE  nan/test:low holds in 3/3"), std::string::npos) << text;
  EXPECT_NE(text.find("SKIPPED         nan/gpu"), std::string::npos) << text;
  const std::string html = PageOf(json, "");
  EXPECT_NE(html.find("nan/&lt;other&gt;"), std::string::npos);
  EXPECT_EQ(html.find("nan/<other>"), std::string::npos);
}

}  // namespace matrix_test
}  // namespace trainwreck
