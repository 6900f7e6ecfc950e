// The arms of a scenario, with what each trains.
#include "harness/spec/arms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/spec/test_target.h"

namespace trainwreck {
namespace arms_test {

using ::testing::ElementsAre;

constexpr char kHead[] =
    "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\n"
    "recipe: {steps: 60, optimizer.lr: 0.1}\n";

std::vector<Arm> ArmsOf(const Scenario& scenario, std::size_t point = 0) {
  static const TargetDescription target = TestTarget();
  return ArmsAt(scenario, scenario.points[point], target);
}

Scenario Read(const std::string& text) {
  ScenarioFile file = ParseScenario(kHead + text, "test.yaml", TestTarget());
  if (!file.scenario) throw std::runtime_error(Messages(file));
  return *file.scenario;
}

std::vector<std::string> NamesOf(const std::vector<Arm>& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name);
  return names;
}

constexpr char kFaulty[] =
    "inject: {hot: {fault: recipe.high_lr, with: {factor: 10}}}\n"
    "healthy: {learns: 'last(loss[:]) < 3'}\n"
    "symptoms: {high: 'last(loss[:]) > 4'}\n"
    "remedies: {lower: {scale: {optimizer.lr: 0.05}}}\n"
    "decoys: {decay: {set: {optimizer.weight_decay: 0.1}}}\n"
    "reference: true\n";

TEST(Arms, StandInTheOrderOfTheScenario) {
  const Scenario scenario = Read(kFaulty);
  const std::vector<Arm> arms = ArmsOf(scenario);
  EXPECT_THAT(NamesOf(arms), ElementsAre("control", "fault", "lower", "decay", "reference"));
  EXPECT_EQ(arms[0].recipe.at("optimizer.lr"), 0.1);
  EXPECT_EQ(arms[1].recipe.at("optimizer.lr"), 1.0);
  EXPECT_NEAR(arms[2].recipe.at("optimizer.lr").get<double>(), 0.05, 1e-12);
  EXPECT_EQ(arms[2].remedy, &scenario.remedies[0]);
  EXPECT_EQ(arms[3].decoy, &scenario.decoys[0]);
  EXPECT_TRUE(arms[0].faults.empty());
  ASSERT_EQ(arms[2].amendments.size(), 1U);
  EXPECT_EQ(arms[2].amendments[0].after, 1.0) << "before the remedy";
}

TEST(Arms, OfAPointHaveItsParameters) {
  const Scenario scenario =
      Read(std::string(kFaulty) + "matrix: {heat: {mild: {with: {hot: {factor: 2}}}, wild: {}}}\n");
  EXPECT_EQ(ArmsOf(scenario, 0)[1].recipe.at("optimizer.lr"), 0.2);
  EXPECT_EQ(ArmsOf(scenario, 1)[1].recipe.at("optimizer.lr"), 1.0);
}

// As a remedy's: the fault is there, and what the twin says of the same key holds.
TEST(Arms, OfATwinWithAFaultHaveItsSettingsLast) {
  const Scenario scenario = Read(
      "twins: {warm: {set: {optimizer.lr: 0.3}, fault: recipe.high_lr, with: {factor: 10}}}\n"
      "agree: {loss: {of: loss, within: 1e-3}}\n"
      "must_notice: {hot: {fault: recipe.no_warmup}}\n");
  const std::vector<Arm> arms = ArmsOf(scenario);
  EXPECT_THAT(NamesOf(arms), ElementsAre("control", "warm", "hot", "hot_in_warm"));
  EXPECT_EQ(arms[1].recipe.at("optimizer.lr"), 0.3);
  EXPECT_EQ(arms[3].twin, &scenario.twins[0]);
  EXPECT_EQ(arms[3].bug, &scenario.bugs[0]);
  EXPECT_EQ(arms[3].faults.size(), 2U);
}

// A bug that control is to be without is compared with control itself.
TEST(Arms, OfABugInTwinsAloneHaveNoControlOfTheirOwn) {
  const Scenario scenario = Read(
      "twins: {again: {}}\n"
      "agree: {loss: {of: loss, within: 1e-3}}\n"
      "must_notice: {hot: {fault: recipe.high_lr, only_in_twins: true}}\n");
  const std::vector<Arm> arms = ArmsOf(scenario);
  EXPECT_THAT(NamesOf(arms), ElementsAre("control", "again", "hot_in_again"));
  EXPECT_EQ(arms[2].recipe.at("optimizer.lr"), 1.0);
}

// A parameter that is not given has its error elsewhere; the arms can be looked at all the same.
TEST(Arms, AFaultWithoutItsParameterChangesNothing) {
  Scenario scenario = Read(kFaulty);
  scenario.faults[0].with.clear();
  EXPECT_EQ(ArmsOf(scenario)[1].recipe.at("optimizer.lr"), 0.1);
  EXPECT_TRUE(ArmsOf(scenario)[1].amendments.empty());
}

}  // namespace arms_test
}  // namespace trainwreck
