#include "harness/bisect/dose.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace dose_test {

DoseQuestion Ask(bool is_remedy, const std::string& name, int doses) {
  return {is_remedy, name, Search(CommitGraph::Line(doses - 1), FailureRates(), {}), {}};
}

Verdict Saying(const std::string& check, const std::string& arm, FailureClass failure_class) {
  Verdict verdict;
  verdict.checks.emplace_back();
  verdict.checks.back().check = check;
  verdict.checks.back().arm = arm;
  verdict.checks.back().failure_class = failure_class;
  return verdict;
}

TEST(Dose, DosesAreEvenStepsOfTheLogarithmAndEndWhereAsked) {
  EXPECT_EQ(SpreadDoses(1, 100, 3, /*is_linear=*/true, /*is_int=*/false),
            (std::vector<double>{1, 50.5, 100}));
  const std::vector<double> log = SpreadDoses(1, 100, 3, false, false);
  ASSERT_EQ(log.size(), 3u);
  EXPECT_DOUBLE_EQ(log[1], 10);
  EXPECT_EQ(log[2], 100);
  EXPECT_EQ(SpreadDoses(0, 4, 3, false, false), (std::vector<double>{0, 2, 4})) << "no logarithm";
  EXPECT_EQ(SpreadDoses(1, 3, 9, true, true), (std::vector<double>{1, 2, 3})) << "each once";
  EXPECT_EQ(SpreadDoses(4, 1, 4, true, false), (std::vector<double>{4, 3, 2, 1}));
}

TEST(Dose, ASymptomShowsWhereItsClaimHolds) {
  DoseQuestion question = Ask(false, "blows_up", 5);
  question.Take(Saying("blows_up", "fault", FailureClass::kNone), 3);
  question.Take(Saying("blows_up", "fault", FailureClass::kSymptomAbsent), 3);
  question.Take(Saying("blows_up", "fault", FailureClass::kSymptomWeak), 1);
  const std::map<int, std::pair<int, int>> seen = {{1, {0, 1}}, {3, {1, 2}}};
  EXPECT_EQ(question.seen, seen);
  // Another arm, another check, or an unknown result: no answer.
  question.Take(Saying("blows_up", "control", FailureClass::kNone), 3);
  question.Take(Saying("stuck", "fault", FailureClass::kNone), 3);
  question.Take(Saying("blows_up", "fault", FailureClass::kUndecided), 3);
  question.Take(Saying("blows_up", "fault", FailureClass::kInfrastructure), 3);
  EXPECT_EQ(question.seen, seen);
  EXPECT_EQ(question.search.runs(), 3);
}

TEST(Dose, ARemedyFailsWhereAnyClaimOfItsArmDoes) {
  DoseQuestion question = Ask(true, "lower", 5);
  Verdict verdict = Saying("blows_up", "lower", FailureClass::kRemedyIneffective);
  verdict.checks.push_back(Saying("learns", "lower", FailureClass::kUndecided).checks[0]);
  question.Take(verdict, 4);
  question.Take(Saying("learns", "lower", FailureClass::kNone), 0);
  question.Take(Saying("fired", "lower", FailureClass::kFaultNotFired), 0);
  const std::map<int, std::pair<int, int>> seen = {{0, {0, 1}}, {4, {1, 1}}};
  EXPECT_EQ(question.seen, seen);
}

TEST(Dose, TheLimitIsTheFirstDoseThatShowsOrTheLastThatARemedyHolds) {
  const std::vector<double> doses = {1, 2, 4, 8};
  const Step culprit{.kind = Step::kCulprit, .commit = 2};
  EXPECT_EQ(LimitText(Ask(false, "x", 4), culprit, doses, {}), "4");
  EXPECT_EQ(LimitText(Ask(true, "x", 4), culprit, doses, {}), "2");
  const Step open{.kind = Step::kUndecided};
  EXPECT_EQ(LimitText(Ask(false, "x", 4), open, doses, std::pair(1.0, 4.0)), "1 to 4");
  EXPECT_EQ(LimitText(Ask(false, "x", 4), open, doses, {}), "undecided");
}

TEST(Dose, TheRangeNarrowsAsRunsAgree) {
  const std::vector<double> doses = {1, 2, 4, 8, 16};
  DoseQuestion question = Ask(false, "x", 5);
  EXPECT_FALSE(RangeOfDoses(question.search, 0.95, doses));
  for (int i = 0; i < 12; ++i) {
    question.Take(Saying("x", "fault", FailureClass::kSymptomAbsent), 2);
    question.Take(Saying("x", "fault", FailureClass::kNone), 3);
  }
  const DoseRange range = RangeOfDoses(question.search, 0.95, doses);
  ASSERT_TRUE(range);
  EXPECT_EQ(*range, std::pair(4.0, 8.0));
}

}  // namespace dose_test
}  // namespace trainwreck
