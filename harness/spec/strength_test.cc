// `strength`: one number of the scenario that a calibration may choose.
#include <gtest/gtest.h>

#include <string>

#include "harness/spec/test_target.h"

namespace trainwreck {
namespace strength_test {

constexpr char kHead[] = "apiVersion: trainwreck/v1\nkind: Scenario\nname: a/test\ntitle: A test\n";
constexpr char kStrength[] = "strength: {default: 100, from: 2, to: 1.0e+4}\n";
constexpr char kRest[] =
    "inject: {hot: {fault: recipe.high_lr, with: {factor: $strength}}}\n"
    "symptoms: {worse: 'mean(loss[-5:]) > control.mean(loss[-5:])'}\n"
    "remedies: {lower: {scale: {optimizer.lr: 0.5 / $strength}}}\n";

ScenarioFile Load(const std::string& text, const Calibration& calibration = {}) {
  TargetDescription target = TestTarget();
  target.calibration = calibration;
  return ParseScenario(kHead + text, "test.yaml", target, {.check_name = false});
}

double FactorOf(const ScenarioFile& file) {
  EXPECT_TRUE(file.scenario) << Messages(file);
  return file.scenario ? file.scenario->faults[0].with.at("factor").get<double>() : 0;
}

TEST(Strength, IsTheScenariosOwnWithoutACalibration) {
  const ScenarioFile file = Load(std::string(kStrength) + kRest);
  EXPECT_EQ(FactorOf(file), 100);
  EXPECT_EQ(file.scenario->remedies[0].changes.scale[0].second, 0.005);
  EXPECT_EQ(file.scenario->strength->Text(), "100");
}

TEST(Strength, IsWhatWasMeasuredWithTheTarget) {
  const ScenarioFile file =
      Load(std::string(kStrength) + kRest, {.strengths = {{"a/test", 16}}, .remark = "stale"});
  EXPECT_EQ(FactorOf(file), 16);
  EXPECT_EQ(file.scenario->remedies[0].changes.scale[0].second, 0.5 / 16);
  EXPECT_EQ(file.scenario->strength->Text(), "16, calibrated; the scenario itself says 100; stale");
  EXPECT_EQ(FactorOf(Load(std::string(kStrength) + kRest, {.strengths = {{"a/other", 16}}})), 100);
}

TEST(Strength, StaysWithinWhatTheScenarioAllows) {
  const ScenarioFile file = Load(std::string(kStrength) + kRest, {.strengths = {{"a/test", 1}}});
  EXPECT_EQ(FactorOf(file), 100);
  EXPECT_EQ(file.scenario->strength->Text(), "100: the calibrated 1 is not between 2 and 10000");
}

// What decides a verdict cannot be calibrated.
TEST(Strength, CannotStandInAClaim) {
  for (const char* claim :
       {"healthy: {set: {assert: 'loss[0] > 0', min_margin: $strength}}\n",
        "quality: {assert: 'loss[0] > 0', min_margin: 1 / $strength}\n",
        "symptoms: {with: {assert: 'mean(loss[-5:]) > 0', min_margin: $strength}}\n",
        "healthy: {learns: mean(loss[-5:]) < $strength}\n"}) {
    std::string rest = kRest;
    if (std::string(claim).starts_with("symptoms")) rest.erase(rest.find("symptoms"), 58);
    const ScenarioFile file = Load(std::string(kStrength) + rest + claim);
    EXPECT_FALSE(file.scenario) << claim;
  }
}

TEST(Strength, SaysWhatIsWrong) {
  const auto says = [](const std::string& text, const std::string& message) {
    const std::string all = Messages(Load(text));
    EXPECT_NE(all.find(message), std::string::npos) << all;
  };
  says(kRest, "the scenario has no 'strength'");
  says(std::string("strength: {default: 1, from: 2, to: 4}\n") + kRest,
       "'default' must lie between 'from' and 'to'");
  says(std::string("strength: {default: 2, from: 0, to: 4}\n") + kRest,
       "'from' must be more than 0");
  says(std::string("strength: {default: 2, from: 1}\n") + kRest, "'to'");
  says(std::string("strength: 5\n") + kRest, "'strength'");
  std::string unused = kRest;
  unused.replace(unused.find("$strength"), 9, "9");
  unused.replace(unused.find("0.5 / $strength"), 15, "0.1");
  says(kStrength + unused, "nothing of the scenario says $strength");
  says(std::string(kStrength) +
           "inject: {hot: {fault: recipe.high_lr, with: {factor: $strengths}}}\n"
           "symptoms: {worse: 'mean(loss[-5:]) > control.mean(loss[-5:])'}\nno_remedy: none\n",
       "'factor'");
}

}  // namespace strength_test
}  // namespace trainwreck
