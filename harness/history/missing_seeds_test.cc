#include "harness/history/missing_seeds.h"

#include <gtest/gtest.h>

#include "harness/history/history_testing.h"

namespace trainwreck {
namespace missing_seeds_test {

// A record in which each scenario has so many seeds.
Record WithSeeds(const std::map<std::string, int>& seeds) {
  Record record = TestRecord("abc", "digest");
  record.cases.clear();
  for (const auto& [scenario, count] : seeds) {
    CaseRecord one = TestCase(scenario);
    one.trainings.clear();
    std::map<int, double> by_seed;
    for (int seed = 0; seed < count; ++seed) {
      by_seed[seed] = 1 + 0.1 * seed;
      one.trainings.push_back({.arm = "control", .seed = seed, .end = "completed"});
    }
    one.margins = {TestMargin("control", "learns", by_seed)};
    record.cases.push_back(one);
  }
  return record;
}

// One margin of nan/a is unknown and one that does not count is, too.
Comparison Unsure(int more) {
  Comparison comparison;
  comparison.a = WithSeeds({{"nan/a", 5}, {"nan/b", 5}});
  comparison.b = WithSeeds({{"nan/a", 3}, {"nan/b", 5}});
  MarginChange change;
  change.case_name = "nan/a";
  change.result.answer = Answer::kUnknown;
  change.result.more_seeds = more - 1;
  comparison.margins.push_back(change);
  change.result.more_seeds = more;
  comparison.margins.push_back(change);
  change.case_name = "nan/b";
  change.by_clock = true;
  comparison.margins.push_back(change);
  return comparison;
}

TEST(MissingSeeds, TheMostThatAnUnknownMarginOfAScenarioWants) {
  EXPECT_EQ(SeedsWanted(Unsure(7)), (std::map<std::string, int>{{"nan/a", 7}}));
  Comparison sure = Unsure(7);
  for (MarginChange& change : sure.margins) change.result.answer = Answer::kSame;
  EXPECT_TRUE(SeedsWanted(sure).empty());
}

TEST(MissingSeeds, BothSidesComeToTheSameSeeds) {
  const Comparison unsure = Unsure(4);
  const auto wanted = SeedsWanted(unsure);
  const auto missing = [&](const Record& side, int at_most) {
    std::string text;
    for (const MissingSeeds& one : MissingOf(side, unsure.a, unsure.b, wanted, at_most)) {
      text += one.scenario + " " + std::to_string(one.first) + ":" + std::to_string(one.end);
    }
    return text;
  };
  EXPECT_EQ(missing(unsure.a, 0), "nan/a 5:7") << "3 seeds of B and 4 more";
  EXPECT_EQ(missing(unsure.b, 0), "nan/a 3:7");
  EXPECT_EQ(missing(unsure.a, 2), "") << "it has them";
  EXPECT_EQ(missing(unsure.b, 2), "nan/a 3:5");
  EXPECT_NE(SeedsHint(unsure).find("trainwreck run nan/a --seeds 7"), std::string::npos);
}

TEST(MissingSeeds, VerdictsOfOneSeedAreOfThatSeed) {
  StoredReport stored;
  Verdict verdict;
  verdict.case_name = "nan/a[sgd]@7";
  verdict.runs["control"].emplace_back();
  stored.verdicts.push_back(verdict);
  const Record record = RecordOfSeeds(stored);
  ASSERT_EQ(record.cases.size(), 1u);
  EXPECT_EQ(record.cases[0].name, "nan/a[sgd]");
  ASSERT_EQ(record.cases[0].trainings.size(), 1u);
  EXPECT_EQ(record.cases[0].trainings[0].seed, 7);
}

}  // namespace missing_seeds_test
}  // namespace trainwreck
