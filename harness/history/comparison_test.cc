#include "harness/history/comparison.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "harness/history/history_testing.h"

namespace trainwreck {
namespace comparison_test {

Record Before() { return TestRecord("aaaaaaaaaaaaaaaa", "1111111111111111"); }
Record After() { return TestRecord("bbbbbbbbbbbbbbbb", "2222222222222222"); }

void Fail(CaseRecord& record) {
  record.verdict = VerdictKind::kFail;
  record.failure_class = FailureClass::kControlUnhealthy;
  record.margins[0].agree = 2;
}

TEST(Compare, NothingChangedIsZero) {
  const Comparison comparison = Compare(Before(), After(), {});
  EXPECT_EQ(comparison.cases, 2);
  EXPECT_TRUE(comparison.verdicts.empty());
  EXPECT_EQ(comparison.CountMargins(Answer::kSame), 2);
  EXPECT_EQ(ExitCode(comparison), 0);
  EXPECT_EQ(Summary(comparison), "the same");
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
  EXPECT_EQ(ExitCode(back), 8);  // news, too
  EXPECT_EQ(Summary(back), "nothing got worse; 1 verdict got better");
  EXPECT_EQ(ExitCode(Compare(b, Before(), {.accept_changes = true})), 0);
}

TEST(Compare, EveryPairOfVerdictsHasADirection) {
  const std::vector<std::string> verdicts = {"pass", "inconclusive", "fail", "error", "skip"};
  const std::string worse =
      "pass>inconclusive pass>fail pass>error inconclusive>fail "
      "inconclusive>error ";
  // What is not run may hide anything.
  const std::string skipped = "pass>skip inconclusive>skip fail>skip error>skip ";
  std::string seen, skips;
  for (const std::string& before : verdicts) {
    for (const std::string& after : verdicts) {
      Record a = Before(), b = After();
      a.cases[0].verdict = *FindVerdict(before);
      b.cases[0].verdict = *FindVerdict(after);
      const Comparison comparison = Compare(a, b, {});
      const bool is_worse = comparison.CountVerdicts(Direction::kWorse) > 0;
      if (is_worse) (after == "skip" ? skips : seen) += before + ">" + after + " ";
      EXPECT_EQ(ExitCode(comparison), is_worse ? 1 : before == after ? 0 : 8) << before << after;
    }
  }
  EXPECT_EQ(seen, worse);
  EXPECT_EQ(skips, skipped);
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
  EXPECT_EQ(ExitCode(Compare(Before(), b, {})), 8);  // better
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
  EXPECT_EQ(ExitCode(comparison), 1);
  EXPECT_EQ(Summary(comparison), "1 case is gone");
  EXPECT_EQ(ExitCode(Compare(Before(), b, {.only_common = true})), 0);
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
  repeated.cases = {TestCase("nan/a"), TestCase("nan/a", VerdictKind::kFail)};
  ASSERT_EQ(Combine({repeated}).cases.size(), 1U);
  EXPECT_EQ(Combine({repeated}).cases[0].verdict, VerdictKind::kFail);
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

// What a run of 20 steps leaves when its signals are `value` from step `from` on.
TraceBits Bits(double value = 1, int from = 0, int steps = 20) {
  RunTrace trace;
  for (int step = 0; step < steps; ++step) {
    trace.series[{"loss", 0}].Set(step, step < from ? 1 : value);
    trace.time_s[0].Set(step, step);
  }
  return BitsOf(trace, true);
}

Record WithBits(Record record) {
  for (CaseRecord& one : record.cases) {
    for (TrainingRecord& training : one.trainings) training.bits = Bits();
  }
  return record;
}

TEST(Bits, OfTheSameProgramAreTheSame) {
  const Comparison comparison = Compare(WithBits(Before()), WithBits(Before()), {});
  EXPECT_EQ(comparison.arms_compared, 2);
  EXPECT_TRUE(comparison.bits.empty());
  EXPECT_EQ(ExitCode(comparison), 0);
  EXPECT_NE(ConsoleText(comparison, false).find("# bits: 2 arms compared, all the same\n"),
            std::string::npos);
}

TEST(Bits, ThatDifferAreNamedThoughEveryMarginIsTheSame) {
  Record b = WithBits(After());
  b.cases[0].trainings[1].bits = Bits(2, 7);
  b.cases[0].trainings[3].bits = Bits(2, 9);
  b.cases[1].trainings[0].bits = Bits(2, 0);
  const Comparison comparison = Compare(WithBits(Before()), b, {});
  ASSERT_EQ(comparison.bits.size(), 2U);
  EXPECT_EQ(comparison.bits[0].seeds, (std::vector<int>{1, 3}));
  EXPECT_EQ(comparison.bits[0].first, 7);
  EXPECT_EQ(ExitCode(comparison), 8);
  EXPECT_EQ(ExitCode(Compare(WithBits(Before()), b, {.accept_changes = true})), 0);
  EXPECT_EQ(Summary(comparison), "nothing got worse; 2 arms of 2 cases have other bits");
  const std::string text = ConsoleText(comparison, false);
  EXPECT_NE(text.find("# bits: 2 arms of 2 cases have other bits\n"
                      "other bits  nan/a: control (2 of 5 seeds, from step 7)\n"
                      "other bits  nan/b: control (1 of 5 seeds, from step 0)\n"),
            std::string::npos)
      << text;
  EXPECT_LT(text.find("# bits"), text.find("# verdicts"));
}

TEST(Bits, OfRunsThatWereStoppedEarlyCountAsFarAsBothWent) {
  Record a = WithBits(Before()), b = WithBits(After());
  a.cases[0].trainings[0].bits = Bits(1, 0, 12);
  a.cases[0].trainings[0].end = "decided";
  EXPECT_EQ(ExitCode(Compare(a, b, {})), 0);
  b.cases[0].trainings[0].bits = Bits(2, 15);  // where A was not any more
  EXPECT_EQ(ExitCode(Compare(a, b, {})), 0);
  b.cases[0].trainings[0].bits = Bits(2, 11);
  EXPECT_EQ(ExitCode(Compare(a, b, {})), 8);
  // Two whole runs of other lengths are not the same.
  a.cases[0].trainings[0].end = "completed";
  b.cases[0].trainings[0].bits = Bits();
  EXPECT_EQ(ExitCode(Compare(a, b, {})), 8);
}

// A scenario that was changed, or run with another --set, says by its bits which arms that touched.
TEST(Bits, AreComparedWhereTheScenarioChanged) {
  Record b = WithBits(Before());
  b.cases[0].scenario_digest = "other";
  EXPECT_EQ(Summary(Compare(WithBits(Before()), b, {})),
            "nothing got worse; 1 case claims something else");
  b.cases[0].trainings[0].bits = Bits(2);
  const Comparison comparison = Compare(WithBits(Before()), b, {});
  ASSERT_EQ(comparison.bits.size(), 1U);
  EXPECT_EQ(comparison.bits[0].cause, Cause::kCode);
  EXPECT_EQ(ExitCode(comparison), 8);
}

TEST(Bits, OfAnotherEnvironmentSayNothing) {
  Record b = WithBits(After());
  b.cases[0].trainings[0].bits = Bits(2);
  for (CaseRecord& one : b.cases) one.environment["blas"] = "OpenBLAS";
  const Comparison comparison = Compare(WithBits(Before()), b, {});
  EXPECT_TRUE(comparison.bits.empty());
  EXPECT_EQ(ExitCode(comparison), 0);
}

TEST(Bits, AreTheLastValuesWhereARecordIsOlder) {
  Record b = WithBits(After());
  EXPECT_EQ(ExitCode(Compare(Before(), b, {})), 0);
  b.cases[0].trainings[2].final_signals["grad_norm"] += 1e-9;
  b.cases[0].trainings[2].final_signals["step_s"] = 7;
  const Comparison comparison = Compare(Before(), b, {});
  ASSERT_EQ(comparison.bits.size(), 1U);
  EXPECT_EQ(comparison.bits[0].seeds, std::vector<int>{2});
  EXPECT_EQ(comparison.bits[0].first, -1);
}

TEST(Bits, ARunThatEndsOtherwiseIsNamed) {
  Record b = WithBits(After());
  b.cases[0].trainings[4].end = "stalled";
  const Comparison comparison = Compare(WithBits(Before()), b, {});
  ASSERT_EQ(comparison.bits.size(), 1U);
  EXPECT_EQ(comparison.bits[0].ends, std::vector<std::string>{"seed 4: completed -> stalled"});
  EXPECT_EQ(Summary(comparison), "nothing got worse; 1 arm of 1 case ends otherwise");
  EXPECT_EQ(ExitCode(comparison), 8);
}

// What load does to the same program: runs are stopped at other steps, so that margins are known of
// other seeds, and what is measured in seconds moves, in all seeds alike.
TEST(Compare, TheSameProgramUnderLoadIsTheSame) {
  Record a = WithBits(Before()), b = WithBits(Before());
  for (Record* side : {&a, &b}) {
    CaseRecord& one = side->cases[0];
    MarginRecord seconds = TestMargin("control", "ends_soon", {{0, 3.1}, {1, 3.2}, {2, 3.0}});
    seconds.unit = "s";
    one.margins.push_back(seconds);
    MarginRecord rate = TestMargin("control", "fast", {{0, 3.1}, {1, 3.2}, {2, 3.0}});
    rate.formula = "always mean(step_s) < 0.01";
    one.margins.push_back(rate);
  }
  for (int i : {1, 2}) {
    for (auto& [seed, margin] : b.cases[0].margins[i].by_seed) margin -= 2.5;
  }
  b.cases[0].margins[0].by_seed.erase(3);
  a.cases[0].margins[0].by_seed.erase(0);
  a.cases[0].trainings[0].bits = Bits(1, 0, 5);
  a.cases[0].trainings[0].end = "decided";
  for (TrainingRecord& training : b.cases[0].trainings) training.step_seconds *= 4;
  const Comparison comparison = Compare(a, b, {});
  EXPECT_EQ(Summary(comparison), "the same") << ConsoleText(comparison, true);
  EXPECT_EQ(ExitCode(comparison), 0);
  // The same for another program, while no verdict flips: the clock's margins are only shown.
  b.target_digest = "2222222222222222";
  const Comparison other = Compare(a, b, {});
  EXPECT_EQ(ExitCode(other), 0) << ConsoleText(other, true);
  EXPECT_NE(ConsoleText(other, true).find("by the clock, only shown"), std::string::npos);
}

TEST(Compare, LostChecksAreWorseAlsoWhereTheScenarioChanged) {
  Record a = Before(), b = After();
  for (Record* side : {&a, &b}) {
    side->cases[0].margins.push_back(TestMargin("fault", "blows_up", {{0, 1.0}, {1, 2.0}}));
  }
  EXPECT_EQ(ExitCode(Compare(a, b, {})), 0);
  for (bool changed : {false, true}) {
    Record fewer = b;
    fewer.cases[0].margins.pop_back();
    if (changed) fewer.cases[0].scenario_digest = "other";
    const Comparison comparison = Compare(a, fewer, {});
    ASSERT_EQ(comparison.lost_checks.size(), 1U);
    EXPECT_EQ(comparison.lost_checks[0].checks, std::vector<std::string>{"'blows_up' in fault"});
    EXPECT_EQ(ExitCode(comparison), 1);
    EXPECT_NE(ConsoleText(comparison, false)
                  .find("lost     nan/a  no longer checked: 'blows_up' in fault"),
              std::string::npos);
    EXPECT_EQ(ExitCode(Compare(fewer, a, {})), changed ? 8 : 0);  // more checks are no loss
  }
}

TEST(Compare, ManyTouchedMarginsLeaveNoneUndecidable) {
  Record a = Before(), b = After();
  std::mt19937 random(6);
  std::normal_distribution<double> noise;
  for (int check = 0; check < 200; ++check) {
    std::map<int, double> before, after;
    for (int seed = 0; seed < 5; ++seed) {
      before[seed] = 3 + 1e-8 * noise(random);
      after[seed] = before[seed] + 1e-9 * noise(random);
      if (check == 70) after[seed] -= 2;
    }
    a.cases[0].margins.push_back(TestMargin("fault", std::to_string(check), before));
    b.cases[0].margins.push_back(TestMargin("fault", std::to_string(check), after));
  }
  const Comparison comparison = Compare(a, b, {});
  EXPECT_EQ(comparison.CountMargins(Answer::kUnknown), 0) << ConsoleText(comparison, false);
  EXPECT_EQ(comparison.CountMargins(Answer::kDifferent), 1);
  EXPECT_EQ(ExitCode(comparison), 1);
}

TEST(Compare, NeverCallsTheSameProgramWhatIsNot) {
  auto text = [](const Record& a, const Record& b) {
    const std::string all = ConsoleText(Compare(a, b, {}), false);
    const std::size_t begin = all.find("# code: ");
    return all.substr(begin, all.find('\n', begin) - begin);
  };
  EXPECT_EQ(text(Before(), Before()), "# code: the same program and commit");
  Record dirty = Before(), commit = Before(), unknown = Before(), torch = Before(), cpu = Before();
  dirty.is_dirty = true;
  commit.commit = "c";
  unknown.target_digest = "";
  for (Record* side : {&torch, &cpu}) {
    side->cases[0].environment["torch"] = "2.12";
    side->cases[0].environment["cpu"] = "other";
  }
  Record before = Before();
  before.cases[0].environment["torch"] = "2.11";
  EXPECT_EQ(text(Before(), dirty), "# code: the same program, with uncommitted changes");
  EXPECT_EQ(text(Before(), commit), "# code: the same program, another commit");
  EXPECT_EQ(text(Before(), unknown), "# code: not known to be the same");
  EXPECT_EQ(text(unknown, unknown), "# code: not known to be the same");
  EXPECT_EQ(text(before, torch), "# code: the same files and commit, with other versions: torch");
  EXPECT_EQ(text(Before(), cpu), "# code: the same program and commit");
  EXPECT_EQ(text(Before(), After()), "# code: differs");
}

Comparison Golden() {
  Record a = Before(), b = After();
  a = WithBits(a);
  b = WithBits(b);
  b.cases[0].trainings[2].bits = Bits(2, 3);
  a.cases[1].margins.push_back(TestMargin("control", "lost|check", {{0, 1.0}}));
  a.cases.push_back(TestCase("nan/old"));
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

}  // namespace comparison_test
}  // namespace trainwreck
