// What failing cases have in common.
#include "harness/report/in_common.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trainwreck {
namespace in_common_test {

using testing::ElementsAre;
using testing::IsEmpty;

CheckResult Broken(const std::string& check, const std::string& arm, FailureClass::Id failure_class,
                   std::vector<std::string> suspects = {}, const std::string& place = "") {
  CheckResult result;
  result.check = check;
  result.arm = arm;
  result.failure_class = failure_class;
  result.suspects = std::move(suspects);
  result.place = place;
  return result;
}

Verdict Failed(const std::string& name, std::vector<CheckResult> checks) {
  Verdict verdict;
  verdict.case_name = name;
  verdict.verdict = VerdictKind::kFail;
  verdict.checks = std::move(checks);
  for (const CheckResult& check : verdict.checks) {
    ArmSummary arm;
    arm.arm = check.arm;
    arm.kind = check.arm == "control" ? ArmKind::kControl : ArmKind::kTwin;
    verdict.arms.push_back(arm);
  }
  return verdict;
}

TEST(InCommon, SaysNothingOfOneCase) {
  EXPECT_THAT(InCommon({}), IsEmpty());
  EXPECT_THAT(InCommon({Failed("a", {Broken("learns", "control", FailureClass::kControlUnhealthy)}),
                        Verdict()}),
              IsEmpty());
}

TEST(InCommon, NamesTheClaimThatFailsInMost) {
  const auto learns = Broken("learns", "control", FailureClass::kControlUnhealthy);
  const auto other = Broken("still", "control", FailureClass::kControlUnhealthy);
  EXPECT_THAT(
      InCommon({Failed("a", {learns, learns}), Failed("b", {other}), Failed("c", {learns})}),
      ElementsAre("2 of the 3 cases that went wrong have in common: 'learns' in control "
                  "(control_unhealthy)"));
}

TEST(InCommon, RanksThePartsThatCasesPointTo) {
  const auto clip = Broken("x", "control", FailureClass::kInvariantBroken, {"clipping"});
  const auto twin = Broken("loss", "ranks", FailureClass::kTwinsDiffer,
                           {"communication", "clipping", "model", "data"});
  const std::vector<Verdict> verdicts = {Failed("a", {clip}), Failed("b", {clip, twin}),
                                         Failed("c", {twin})};
  EXPECT_THAT(Suspects(verdicts), ElementsAre("clipping", "communication", "data", "model"));
  EXPECT_EQ(InCommon(verdicts).at(1),
            "look first at: clipping (3 cases), communication (2 cases), data (2 cases)");
}

TEST(InCommon, HasTheEarliestDifference) {
  const auto at = [](int step) {
    return Broken("loss", "ranks", FailureClass::kTwinsDiffer, {},
                  "apart first at step " + std::to_string(step) + ": loss (forward pass)");
  };
  EXPECT_EQ(InCommon({Failed("a", {at(12)}), Failed("b", {at(3)})}).back(),
            "earliest difference, b, ranks: apart first at step 3: loss (forward pass)");
}

}  // namespace in_common_test
}  // namespace trainwreck
