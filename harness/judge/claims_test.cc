#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "harness/judge/test_support.h"
#include "harness/judge/verdict.h"

namespace trainwreck {
namespace claims_test {

using testing::AddEvent;
using testing::AddFired;
using testing::Bench;
using testing::EndingWith;
using testing::ExplodingLoss;
using testing::kBlowUpStep;
using testing::LearningLoss;
using testing::MakeCheck;
using testing::Outcome;
using testing::WithLoss;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Every way in which a scenario can fail to keep its word: one change, one class.
struct Mutation {
  const char* name;
  const char* outcome;
  std::function<void(Bench&)> mutate;
};

class MutationTest : public ::testing::TestWithParam<Mutation> {};

TEST_P(MutationTest, TurnsRed) {
  Bench bench;
  GetParam().mutate(bench);
  const Verdict verdict = bench.Judged();
  EXPECT_EQ(Outcome(verdict), GetParam().outcome) << verdict.reason;
  EXPECT_FALSE(verdict.reason.empty());
}

const Mutation kMutations[] = {
    {"ConstantLossInControl", "fail/control_unhealthy",
     [](Bench& b) { b.In("control", -1, WithLoss(LearningLoss(4))); }},
    {"OneUnhealthyControl", "fail/control_unhealthy",
     [](Bench& b) { b.In("control", 1, WithLoss(LearningLoss(4))); }},
    {"ControlShowsTheSymptom", "fail/symptom_in_control",
     [](Bench& b) {
       std::vector<double> loss = LearningLoss(1);
       loss[8] = kNan;
       b.In("control", 0, WithLoss(loss));
     }},
    {"FlippedSymptom", "fail/symptom_in_control",
     [](Bench& b) {
       b.scenario().symptoms[0] = MakeCheck("blows_up", "not eventually[:10] nonfinite(loss)");
     }},
    {"FlippedHealthyCheck", "fail/control_unhealthy",
     [](Bench& b) {
       b.scenario().healthy[0] = MakeCheck("learns", "mean(loss[-5:]) > 0.8 * mean(loss[:5])");
     }},
    {"FaultArmEqualToControl", "fail/symptom_absent",
     [](Bench& b) { b.In("fault", -1, WithLoss(LearningLoss(1))); }},
    {"SymptomAbsentInOneSeed", "fail/symptom_absent",
     [](Bench& b) { b.In("fault", 2, WithLoss(LearningLoss(1))); }},
    {"SymptomTooLateForItsMargin", "fail/symptom_weak",
     [](Bench& b) { b.In("fault", -1, WithLoss(ExplodingLoss(9))); }},
    {"NoFiredEvent", "fail/fault_not_fired",
     [](Bench& b) { b.In("fault", 1, [](RunResult& run) { run.trace.events.clear(); }); }},
    {"FiredInTheFaultArmOnly", "fail/fault_not_fired",
     [](Bench& b) { b.In("decay", -1, [](RunResult& run) { run.trace.events.clear(); }); }},
    {"NotFiredInTheRemedyArm", "fail/fault_not_fired",
     [](Bench& b) { b.In("lower_lr", -1, [](RunResult& run) { run.trace.events.clear(); }); }},
    {"FiredButChangedNothing", "fail/fault_not_fired",
     [](Bench& b) {
       b.In("fault", -1, [](RunResult& run) {
         run.trace.events.clear();
         AddFired(run, 0.1, 0.1);
       });
     }},
    {"FiredWithoutEvidence", "fail/fault_not_fired",
     [](Bench& b) {
       b.In("fault", -1, [](RunResult& run) {
         run.trace.events.clear();
         AddEvent(run, "fired", 0, {{"id", "hot"}});
       });
     }},
    {"AnotherFaultFired", "fail/fault_not_fired",
     [](Bench& b) {
       b.In("fault", -1, [](RunResult& run) { run.trace.events[0].fields["id"] = "cold"; });
     }},
    {"RemedyArmEqualToFaultArm", "fail/remedy_ineffective",
     [](Bench& b) { b.In("lower_lr", -1, WithLoss(ExplodingLoss(testing::kBlowUpStep))); }},
    {"RemedyIneffectiveInOneSeed", "fail/remedy_ineffective",
     [](Bench& b) {
       std::vector<double> loss = LearningLoss(1);
       loss[3] = kNan;
       loss[4] = 3;
       b.scenario().healthy[0] = MakeCheck("learns", "mean(loss[-5:]) < 3");
       b.In("lower_lr", 0, WithLoss(loss));
     }},
    {"RemedyDoesNotLearn", "fail/remedy_ineffective",
     [](Bench& b) { b.In("lower_lr", -1, WithLoss(LearningLoss(4))); }},
    {"RemedyCostly", "fail/remedy_costly",
     [](Bench& b) { b.In("lower_lr", -1, WithLoss(LearningLoss(1.8))); }},
    {"EveryRemedyIsAnUndo", "fail/remedy_ineffective",
     [](Bench& b) {
       b.scenario().remedies[0].changes = {{{"optimizer.lr", 0.1}}, {}};
     }},
    {"NoRemedy", "fail/remedy_ineffective", [](Bench& b) { b.scenario().remedies.clear(); }},
    {"DecoyEffective", "fail/decoy_effective",
     [](Bench& b) { b.In("decay", -1, WithLoss(LearningLoss(1))); }},
    {"DecoyEffectiveInOneSeed", "fail/decoy_effective",
     [](Bench& b) { b.In("decay", 0, WithLoss(LearningLoss(1))); }},
    {"NanHidesWhetherControlLearns", "inconclusive/undecided",
     [](Bench& b) {
       std::vector<double> loss = LearningLoss(1);
       loss[18] = kNan;
       b.In("control", -1, WithLoss(loss));
     }},
    {"ControlOfQualityIsUnknown", "inconclusive/undecided",
     [](Bench& b) {
       b.scenario().quality =
           MakeCheck("quality", "mean(loss[-5:]) <= 1.25 * control.mean(loss[9:10])");
       std::vector<double> loss = LearningLoss(1);
       loss[9] = kNan;  // in no window of another check... but the symptom's
       b.scenario().symptoms[0] = MakeCheck("blows_up", "eventually[:8] nonfinite(loss)");
       b.In("control", 0, WithLoss(loss));
     }},
    {"RunStoppedBeforeTheWindowEnds", "inconclusive/undecided",
     [](Bench& b) {
       std::vector<double> loss = LearningLoss(4);
       loss.resize(8);
       b.In("decay", 0, WithLoss(loss));
       b.In("decay", 0, EndingWith(RunEnd::kDecided));
     }},
    {"TooFewSeeds", "inconclusive/too_few_seeds", [](Bench& b) { b.options.seeds = 2; }},
    {"Crash", "error/crash", [](Bench& b) { b.In("fault", 0, EndingWith(RunEnd::kFailed)); }},
    {"Garbage", "error/crash", [](Bench& b) { b.In("control", 0, EndingWith(RunEnd::kGarbage)); }},
    {"CrashOfARemedy", "error/crash",
     [](Bench& b) { b.In("lower_lr", 0, EndingWith(RunEnd::kFailed)); }},
    {"Stall", "error/timeout", [](Bench& b) { b.In("decay", 2, EndingWith(RunEnd::kStalled)); }},
    {"Timeout", "error/timeout",
     [](Bench& b) { b.In("control", -1, EndingWith(RunEnd::kTimeout)); }},
    {"Leak", "error/leak", [](Bench& b) { b.In("fault", 1, EndingWith(RunEnd::kLeak)); }},
    {"DiskBudget", "error/infrastructure",
     [](Bench& b) { b.In("fault", 1, EndingWith(RunEnd::kDiskBudget)); }},
    {"Infrastructure", "error/infrastructure",
     [](Bench& b) { b.In("fault", 1, EndingWith(RunEnd::kInfrastructure)); }},
    {"ReferenceCrashes", "error/crash",
     [](Bench& b) {
       b.scenario().has_reference = true;
       b.In("reference", 1, EndingWith(RunEnd::kFailed));
     }},
    {"MissingDevice", "skip/requires:device:cuda",
     [](Bench& b) { b.scenario().requires_.devices = {"cuda"}; }},
    {"UnexpectedPass", "fail/unexpected_pass",
     [](Bench& b) {
       b.scenario().expect = {VerdictKind::kFail, FailureClass::kSymptomAbsent, "a known limit"};
     }},
    {"OtherClassThanExpected", "fail/remedy_costly",
     [](Bench& b) {
       b.scenario().expect = {VerdictKind::kFail, FailureClass::kSymptomAbsent, "a known limit"};
       b.In("lower_lr", -1, WithLoss(LearningLoss(1.8)));
     }},
    {"ErrorOutranksFailure", "error/leak",
     [](Bench& b) {
       b.In("fault", 1, EndingWith(RunEnd::kLeak));
       b.In("control", -1, WithLoss(LearningLoss(4)));
     }},
    {"UnhealthyControlOutranksTheRest", "fail/control_unhealthy",
     [](Bench& b) {
       b.In("control", -1, WithLoss(LearningLoss(4)));
       b.In("fault", -1, WithLoss(LearningLoss(1)));
       b.In("decay", -1, WithLoss(LearningLoss(1)));
     }},
};

INSTANTIATE_TEST_SUITE_P(Claims, MutationTest, ::testing::ValuesIn(kMutations),
                         [](const auto& info) { return info.param.name; });

}  // namespace claims_test
}  // namespace trainwreck
