// What a repository shows of an invocation: the badge, and the summary of a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/protocol/json.h"
#include "harness/report/report.h"

namespace trainwreck {
namespace github_test {

using ::testing::HasSubstr;

Verdict Of(const std::string& name, VerdictKind kind, const FailureClass& failure_class = {}) {
  Verdict verdict;
  verdict.case_name = verdict.scenario = name;
  verdict.verdict = kind;
  verdict.failure_class = failure_class;
  return verdict;
}

const Verdict kPassed = Of("nan/fine", VerdictKind::kPass);
const Verdict kFailed = Of("nan/weak", VerdictKind::kFail, FailureClass::kSymptomWeak);
const Verdict kLate = Of("hang/late", VerdictKind::kError, FailureClass::kTimeout);
const Verdict kSkipped = Of("hang/gpu", VerdictKind::kSkip, FailureClass::Requires("device:cuda"));

std::string Badge(const char* format, const std::vector<Verdict>& verdicts) {
  return FindReportFormat(format)->text(verdicts, {});
}

TEST(BadgeTest, SaysWhatTheWorstIs) {
  const auto message = [](const std::vector<Verdict>& verdicts) {
    return Json::parse(Badge("shields", verdicts)).at("message").get<std::string>();
  };
  EXPECT_EQ(Json::parse(Badge("shields", {kPassed, kFailed, kLate, kSkipped})),
            Json({{"schemaVersion", 1},
                  {"label", "trainwreck"},
                  {"message", "1 of 3 failed"},
                  {"color", "red"}}));
  EXPECT_EQ(message({kPassed, kPassed, kSkipped}), "2 passed");
  EXPECT_EQ(message({kPassed, kLate}), "1 of 2 undecided");
  EXPECT_EQ(message({kSkipped}), "nothing executed");
  EXPECT_EQ(message({}), "nothing executed");
}

TEST(BadgeTest, ThePictureHasTheSameWords) {
  const std::string passed = Badge("badge", {kPassed, kPassed});
  EXPECT_THAT(passed, HasSubstr("<title>trainwreck: 2 passed</title>"));
  EXPECT_THAT(passed, HasSubstr("fill=\"#1a6b2f\""));
  EXPECT_THAT(Badge("badge", {kPassed, kFailed}), HasSubstr("fill=\"#b3261e\""));
}

TEST(StepSummaryTest, ShowsEachCaseByFamilyAndWhatDidNotPassFirst) {
  const std::string text = MarkdownReport({kPassed, kFailed, kLate, kSkipped}, {});
  EXPECT_THAT(text, HasSubstr("| hang | 0 of 1 | ⚠️⏭️ |\n| nan | 1 of 2 | ✅❌ |\n"));
  EXPECT_LT(text.find("| hang/late |"), text.find("| nan/fine |"));
  EXPECT_THAT(text, HasSubstr("<details open><summary>nan/weak: symptom"));
  EXPECT_THAT(text, HasSubstr("<details><summary>hang/late: timeout"));
}

}  // namespace github_test
}  // namespace trainwreck
