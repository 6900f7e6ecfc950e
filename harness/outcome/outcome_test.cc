#include "harness/outcome/outcome.h"

#include <gtest/gtest.h>

#include <set>

namespace trainwreck {
namespace {

TEST(Outcome, EveryNameIsReadBackAndStandsOnce) {
  std::set<std::string> names;
  for (const VerdictInfo& verdict : AllVerdicts()) {
    EXPECT_EQ(FindVerdict(verdict.name), verdict.id);
    EXPECT_TRUE(names.insert(verdict.name).second) << verdict.name;
    EXPECT_STRNE(verdict.meaning, "");
  }
  for (const ClassInfo& info : AllClasses()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_STRNE(info.meaning, "") << info.name;
    if (info.id == FailureClass::kRequires) continue;
    EXPECT_EQ(FailureClass::Find(info.name), FailureClass(info.id));
    EXPECT_EQ(FailureClass(info.id).text(), info.name);
  }
  for (int kind = 0; kind <= static_cast<int>(ArmKind::kBug); ++kind) {
    EXPECT_EQ(FindArmKind(ToString(ArmKind(kind))), ArmKind(kind));
  }
  for (int status = 0; status <= static_cast<int>(ArmStatus::kUndo); ++status) {
    EXPECT_EQ(FindArmStatus(ToString(ArmStatus(status))), ArmStatus(status));
  }
  EXPECT_EQ(FindVerdict("passed"), std::nullopt);
  EXPECT_EQ(FailureClass::Find("symptom"), std::nullopt);
  EXPECT_EQ(FindArmKind(""), std::nullopt);
}

TEST(Outcome, ASkipHasWhatItLacksInItsClass) {
  const FailureClass gpu = FailureClass::Requires("device:cuda");
  EXPECT_EQ(gpu.text(), "requires:device:cuda");
  EXPECT_EQ(gpu.lacking(), "device:cuda");
  EXPECT_EQ(FailureClass::Find("requires:device:cuda"), gpu);
  EXPECT_FALSE(gpu == FailureClass::Requires("ranks:4"));
  EXPECT_TRUE(gpu == FailureClass::kRequires);
  EXPECT_EQ(FailureClass::Find("requires"), std::nullopt);
  EXPECT_EQ(OutcomeText(VerdictKind::kSkip, gpu), "skip/requires:device:cuda");
}

// An error outranks a failure, which outranks what is not known; and no two classes are as bad.
TEST(Outcome, ClassesAreRanked) {
  int rank = 0;
  std::vector<VerdictKind> verdicts;
  for (const ClassInfo& info : ClassesByRank()) {
    EXPECT_EQ(info.rank, ++rank) << info.name;
    if (verdicts.empty() || verdicts.back() != info.verdict) verdicts.push_back(info.verdict);
  }
  EXPECT_EQ(verdicts, (std::vector<VerdictKind>{VerdictKind::kError, VerdictKind::kFail,
                                                VerdictKind::kInconclusive}));
  for (const ClassInfo& info : AllClasses()) {
    const bool is_of_no_check = info.id == FailureClass::kUnexpectedPass ||
                                info.id == FailureClass::kNondeterministic ||
                                info.id == FailureClass::kRequires;
    EXPECT_EQ(info.rank == 0, is_of_no_check) << info.name;
  }
}

TEST(Outcome, VerdictsHaveTheirExitStatus) {
  EXPECT_EQ(ExitStatusOf(VerdictKind::kPass), 0);
  EXPECT_EQ(ExitStatusOf(VerdictKind::kFail), 1);
  EXPECT_EQ(ExitStatusOf(VerdictKind::kSkip), 4);
  EXPECT_EQ(ExitStatusOf(VerdictKind::kInconclusive), 5);
  EXPECT_EQ(ExitStatusOf(VerdictKind::kError), 7);
  std::set<int> explained;
  for (const ExitInfo& exit : AllExitStatuses()) explained.insert(exit.status);
  EXPECT_EQ(explained, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 70, 130}));
}

TEST(Outcome, AScenarioMayExpectTheClassesOfItsVerdict) {
  EXPECT_EQ(ClassNames(VerdictKind::kInconclusive),
            (std::vector<std::string>{"undecided", "too_few_seeds"}));
  EXPECT_TRUE(ClassNames(VerdictKind::kSkip).empty());
  EXPECT_EQ(ClassNames(VerdictKind::kFail).size(), 13u);
}

}  // namespace
}  // namespace trainwreck
