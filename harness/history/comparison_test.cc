#include "harness/history/comparison.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "harness/history/history_testing.h"

namespace trainwreck {
namespace {

Record Before() { return TestRecord("aaaaaaaaaaaaaaaa", "1111111111111111"); }
Record After() { return TestRecord("bbbbbbbbbbbbbbbb", "2222222222222222"); }

void Fail(CaseRecord& record) {
  record.verdict = "fail";
  record.failure_class = "control_unhealthy";
  record.margins[0].agree = 2;
}

TEST(Compare, NothingChangedIsZero) {
  const Comparison comparison = Compare(Before(), After(), {});
  EXPECT_EQ(comparison.cases, 2);
  EXPECT_TRUE(comparison.verdicts.empty());
  EXPECT_EQ(comparison.CountMargins(Answer::kSame), 2);
  EXPECT_EQ(ExitCode(comparison), 0);
  EXPECT_EQ(Summary(comparison), "nothing got worse");
}

TEST(Compare, AFlippedVerdictIsWorseAndNamesItsCheck) {
  Record b = After();
  Fail(b.cases[1]);
  const Comparison comparison = Compare(Before(), b, {});
  ASSERT_EQ(comparison.verdicts.size(), 1U);
  const VerdictChange& change = comparison.verdicts[0];
  EXPECT_EQ(change.case_name, "nan/b");
  EXPECT_EQ(change.direction, Direction::kWorse);
  EXPECT_EQ(change.cause, Cause::kCode);
  EXPECT_EQ(change.after, "fail/control_unhealthy");
  ASSERT_EQ(change.checks.size(), 1U);
  EXPECT_EQ(change.checks[0], "'learns' in control: as claimed in 5 of 5 seeds -> 2 of 5");
  EXPECT_EQ(ExitCode(comparison), 1);
  // The other way round it got better.
  const Comparison back = Compare(b, Before(), {});
  EXPECT_EQ(back.verdicts[0].direction, Direction::kBetter);
  EXPECT_EQ(ExitCode(back), 0);
}

TEST(Compare, EveryPairOfVerdictsHasADirection) {
  const std::vector<std::string> verdicts = {"pass", "inconclusive", "fail", "error", "skip"};
  const std::string worse =
      "pass>inconclusive pass>fail pass>error inconclusive>fail "
      "inconclusive>error ";
  std::string seen;
  for (const std::string& before : verdicts) {
    for (const std::string& after : verdicts) {
      Record a = Before(), b = After();
      a.cases[0].verdict = before;
      b.cases[0].verdict = after;
      const Comparison comparison = Compare(a, b, {});
      if (comparison.CountVerdicts(Direction::kWorse) > 0) seen += before + ">" + after + " ";
      EXPECT_EQ(ExitCode(comparison), comparison.CountVerdicts(Direction::kWorse) > 0 ? 1 : 0);
    }
  }
  EXPECT_EQ(seen, worse);
}

TEST(Compare, TellsEnvironmentFromCode) {
  struct Row {
    bool same_code, same_environment;
    Cause cause;
    int status;
  };
  for (const Row& row :
       {Row{false, true, Cause::kCode, 1}, Row{true, false, Cause::kEnvironment, 5},
        Row{false, false, Cause::kEither, 5}, Row{true, true, Cause::kChance, 1}}) {
    Record b = row.same_code ? Before() : After();
    Fail(b.cases[0]);
    if (!row.same_environment) b.cases[0].environment["blas"] = "OpenBLAS";
    const Comparison comparison = Compare(Before(), b, {});
    EXPECT_EQ(comparison.verdicts[0].cause, row.cause) << ToString(row.cause);
    EXPECT_EQ(ExitCode(comparison), row.status) << ToString(row.cause);
    EXPECT_EQ(comparison.environment.count("blas"), row.same_environment ? 0U : 1U);
  }
  // The case whose environment is the same is not excused by another one's.
  Record b = After();
  Fail(b.cases[0]);
  b.cases[1].environment["blas"] = "OpenBLAS";
  EXPECT_EQ(ExitCode(Compare(Before(), b, {})), 1);
  // Uncommitted changes are another code, even of the same program; a key that only one side
  // knows is no other environment.
  Record dirty = Before();
  dirty.is_dirty = true;
  EXPECT_FALSE(Compare(Before(), dirty, {}).same_code);
  dirty.cases[0].environment["new_key"] = "x";
  EXPECT_TRUE(Compare(Before(), dirty, {}).environment.empty());
}

TEST(Compare, AMarginThatMovedIsWorseOrUnknown) {
  Record b = After();
  for (auto& [seed, margin] : b.cases[0].margins[0].by_seed) margin -= 50;
  Comparison comparison = Compare(Before(), b, {});
  ASSERT_EQ(comparison.CountMargins(Answer::kDifferent), 1);
  EXPECT_TRUE(comparison.margins[0].is_worse());
  EXPECT_EQ(ExitCode(comparison), 1);
  for (auto& [seed, margin] : b.cases[0].margins[0].by_seed) margin += 100;
  EXPECT_EQ(ExitCode(Compare(Before(), b, {})), 0);  // better
  // Two seeds cannot tell.
  Record few = After();
  few.cases[0].margins[0].by_seed = {{0, -50.0}, {1, -49.0}};
  comparison = Compare(Before(), few, {});
  EXPECT_EQ(comparison.CountMargins(Answer::kUnknown), 1);
  EXPECT_GT(comparison.margins[0].result.more_seeds, 0);
  EXPECT_EQ(ExitCode(comparison), 5);
}

TEST(Compare, OnlyEqualClaimsAreCompared) {
  Record b = After();
  b.cases[0].scenario_digest = "other";
  b.cases[0].margins[0].by_seed[0] = -50;
  Fail(b.cases[0]);
  b.cases[1].margins[0].formula = "at_end loss < 2";
  Comparison comparison = Compare(Before(), b, {});
  EXPECT_EQ(comparison.changed_scenarios, std::vector<std::string>{"nan/a"});
  EXPECT_TRUE(comparison.verdicts[0].scenario_changed);
  EXPECT_TRUE(comparison.margins.empty());
  EXPECT_EQ(comparison.margins_without_numbers, 1);
  b.cases[0].name = "nan/new";
  comparison = Compare(Before(), b, {});
  EXPECT_EQ(comparison.only_in_a, std::vector<std::string>{"nan/a"});
  EXPECT_EQ(comparison.only_in_b, std::vector<std::string>{"nan/new"});
  b.cases.clear();
  EXPECT_EQ(ExitCode(Compare(Before(), b, {})), 4);
}

TEST(Compare, SpeedIsARatioOfPairs) {
  Record b = After();
  for (TrainingRecord& training : b.cases[0].trainings) training.step_seconds *= 1.5;
  Comparison comparison = Compare(Before(), b, {});
  ASSERT_EQ(comparison.speed.size(), 2U);
  EXPECT_NEAR(comparison.speed[0].step_time->ratio, 1.5, 1e-9);
  EXPECT_NEAR(comparison.speed[1].step_time->ratio, 1, 1e-9);
  EXPECT_EQ(ExitCode(comparison), 0);  // it is only shown
  EXPECT_EQ(ExitCode(Compare(Before(), b, {.max_slowdown = 1.2})), 1);
  EXPECT_EQ(ExitCode(Compare(Before(), b, {.max_slowdown = 1.6})), 0);
  EXPECT_EQ(ExitCode(Compare(Before(), b, {.max_memory = 1.1})), 0);
  b.cases[0].trainings[0].step_seconds *= 10;  // one outlier: the interval is wide
  EXPECT_EQ(ExitCode(Compare(Before(), b, {.max_slowdown = 1.2})), 5);
  b.cores = 4;
  comparison = Compare(Before(), b, {.max_slowdown = 100});
  EXPECT_NE(comparison.speed_note, "");
  EXPECT_EQ(ExitCode(comparison), 5);
}

TEST(Combine, TakesTheNewestSampleOfEachSeed) {
  Record newest = Before(), older = Before(), other_program = After(), other_blas = Before();
  newest.cases[0].margins[0].by_seed = {{0, 7.0}};
  newest.cases[0].trainings.resize(1);
  newest.cases.resize(1);
  older.cases[0].margins[0].by_seed = {{0, 5.0}, {1, 6.0}};
  other_program.cases[0].margins[0].by_seed = {{2, 9.0}};
  other_blas.cases[0].environment["blas"] = "OpenBLAS";
  other_blas.cases[0].margins[0].by_seed = {{3, 9.0}};
  const Record combined = Combine({newest, other_program, other_blas, older});
  ASSERT_EQ(combined.cases.size(), 2U);
  EXPECT_EQ(combined.cases[0].margins[0].by_seed, (std::map<int, double>{{0, 7.0}, {1, 6.0}}));
  EXPECT_EQ(combined.cases[0].trainings.size(), 5U);
  // A case that was repeated within one invocation: its last round counts.
  Record repeated = Before();
  repeated.cases = {TestCase("nan/a", "pass"), TestCase("nan/a", "fail")};
  ASSERT_EQ(Combine({repeated}).cases.size(), 1U);
  EXPECT_EQ(Combine({repeated}).cases[0].verdict, "fail");
}

// Twelve margins on both sides from one distribution, over and over: the whole comparison may call
// one of them different in 5% of the cases at most.
TEST(Compare, FalseAlarmsOfAWholeComparisonStayWithinTheirBound) {
  std::mt19937 random(5);
  std::normal_distribution<double> noise;
  constexpr int kRounds = 400;
  int alarms = 0, found = 0;
  for (int round = 0; round < kRounds; ++round) {
    Record a = Before(), b = After();
    for (Record* side : {&a, &b}) {
      for (CaseRecord& one : side->cases) {
        one.margins.clear();
        for (int check = 0; check < 6; ++check) {
          std::map<int, double> by_seed;
          for (int seed = 0; seed < 10; ++seed) by_seed[seed] = noise(random);
          one.margins.push_back(TestMargin("control", std::to_string(check), by_seed));
        }
      }
    }
    const Comparison null = Compare(a, b, {});
    alarms += null.CountMargins(Answer::kDifferent) > 0;
    EXPECT_EQ(ExitCode(null) == 1, Summary(null).find("got worse") != std::string::npos &&
                                       Summary(null).rfind("nothing", 0) != 0);
    for (auto& [seed, margin] : b.cases[0].margins[3].by_seed) margin -= 4;
    const Comparison shifted = Compare(a, b, {});
    found += shifted.margins[3].is_worse();
  }
  EXPECT_LE(alarms, 0.05 * kRounds + 3 * std::sqrt(0.05 * 0.95 * kRounds));
  EXPECT_GE(found, 0.95 * kRounds);
}

Comparison Golden() {
  Record a = Before(), b = After();
  a.id = 3;
  b.output_dir = "out|of\x1b[31m <b>bounds</b>";
  b.is_dirty = true;
  Fail(b.cases[1]);
  for (auto& [seed, margin] : b.cases[0].margins[0].by_seed) margin -= 50;
  b.cases[1].environment["blas"] = "Open|BLAS";
  for (TrainingRecord& training : b.cases[0].trainings) training.step_seconds *= 1.25;
  a.cases[1].margins.push_back(TestMargin("fault", "gone", {}));
  b.cases[1].margins.push_back(TestMargin("fault", "gone", {{0, 1.0}}));
  a.cases[1].margins.push_back(TestMargin("fault", "few", {{0, 1.0}, {1, 2.0}}));
  b.cases[1].margins.push_back(TestMargin("fault", "few", {{0, 0.5}, {1, 4.0}}));
  b.cases.push_back(TestCase("nan/new"));
  Comparison comparison = Compare(a, b, {.max_slowdown = 1.1});
  comparison.hint = "try this";
  return comparison;
}

void ExpectGolden(const std::string& name, const std::string& text) {
  std::ifstream file("harness/history/testdata/" + name);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(golden.str(), text) << name;
  if (const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
    std::ofstream(std::string(folder) + "/" + name) << text;  // to look at, or to take over
  }
}

TEST(Reports, AreAsTheyWere) {
  const Comparison comparison = Golden();
  ExpectGolden("comparison.txt", ConsoleText(comparison, /*verbose=*/true));
  ExpectGolden("comparison.md", MarkdownText(comparison));
  ExpectGolden("comparison.json", ToJson(comparison).dump(1) + "\n");
}

TEST(Reports, LeaveOutWhatIsTheSameUnlessAsked) {
  const Comparison comparison = Compare(Before(), After(), {});
  EXPECT_EQ(ConsoleText(comparison, false).find("bit for bit  "), std::string::npos);
  EXPECT_NE(ConsoleText(comparison, true).find("same, bit for bit  nan/a: 'learns' in control"),
            std::string::npos);
}

}  // namespace
}  // namespace trainwreck
