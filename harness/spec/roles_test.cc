// Scenarios that name keys by their roles, so that they run on any target that has such keys.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "harness/spec/fault_file.h"
#include "harness/spec/test_target.h"

namespace trainwreck {
namespace roles_test {

using Roles = std::vector<std::pair<std::string, std::string>>;  // key, role

// Somebody's own command, which calls its keys as it likes.
TargetDescription Target(const Roles& roles) {
  TargetDescription target;
  target.name = "mine";
  target.level = 0;
  target.recipe = {{.name = "steps", .type = ValueType::kInt, .default_value = 40}};
  for (const auto& [name, role] : roles) {
    target.recipe.push_back(
        {.name = name, .type = ValueType::kNumber, .default_value = 0.5, .role = role});
  }
  target.signals = {{.name = "loss"}};
  AddHarnessVocabulary(target);
  FaultCatalogue(target).AddSuite();
  return target;
}

ScenarioFile Load(const std::string& text, const Roles& roles, LoadOptions options = {}) {
  options.check_name = false;
  return ParseScenario(
      "apiVersion: trainwreck/v1\nkind: Scenario\nname: test\ntitle: A test\n" + text, "test.yaml",
      Target(roles), options);
}

constexpr char kFault[] =
    "inject: {hot: {fault: recipe.high_lr, with: {factor: 8}}}\n"
    "symptoms:\n  worse: mean(loss[-5:]) > control.mean(loss[-5:])\n";

TEST(Roles, StandForTheKeyThatHasThem) {
  const ScenarioFile file = Load(std::string("recipe: {role: {learning_rate: 0.25}}\n") + kFault +
                                     "remedies:\n  lower: {scale: {role.learning_rate: 0.1}}\n"
                                     "  clip: {set: {role: {clip_norm: 1}}}\n",
                                 {{"peak", "learning_rate"}, {"bound", "clip_norm"}});
  ASSERT_TRUE(file.scenario) << Messages(file);
  EXPECT_EQ(file.scenario->recipe.set[0].first, "peak");
  EXPECT_EQ(file.scenario->remedies[0].changes.scale[0].first, "peak");
  EXPECT_EQ(file.scenario->remedies[1].changes.set[0].first, "bound");
  EXPECT_TRUE(file.scenario->left_out.empty());
  const TargetDescription target = Target({{"peak", "learning_rate"}});
  EXPECT_EQ(target.FindFault("recipe.high_lr")->amends[0].key, "peak");
}

// Files of faults named this key before there were roles.
TEST(Roles, AreThoseOfTheReferenceTrainersKeysWhereNoKeySaysSo) {
  const std::string text =
      std::string(kFault) + "remedies: {r: {scale: {role.learning_rate: 2}}}\n";
  const ScenarioFile file = Load(text, {{"optimizer.lr", ""}});
  ASSERT_TRUE(file.scenario) << Messages(file);
  EXPECT_EQ(file.scenario->remedies[0].changes.scale[0].first, "optimizer.lr");
  const ScenarioFile other = Load(text, {{"optimizer.lr", ""}, {"peak", "learning_rate"}});
  EXPECT_EQ(other.scenario->remedies[0].changes.scale[0].first, "peak");
}

TEST(Roles, OfARemedyThatTheTargetLacksLeaveTheRemedyOut) {
  const ScenarioFile file = Load(std::string(kFault) +
                                     "remedies:\n  lower: {scale: {role.learning_rate: 0.1}}\n"
                                     "  clip: {set: {role.clip_norm: 1}}\n"
                                     "decoys: {decay: {set: {role: {weight_decay: 1}}}}\n",
                                 {{"peak", "learning_rate"}});
  ASSERT_TRUE(file.scenario) << Messages(file);
  EXPECT_EQ(file.scenario->unserved, "");
  ASSERT_EQ(file.scenario->remedies.size(), 1U);
  EXPECT_EQ(file.scenario->remedies[0].name, "lower");
  EXPECT_TRUE(file.scenario->decoys.empty());
  ASSERT_EQ(file.scenario->left_out.size(), 2U);
  EXPECT_EQ(file.scenario->left_out[0].name, "clip");
  EXPECT_EQ(file.scenario->left_out[0].role, "clip_norm");
  EXPECT_EQ(file.scenario->left_out[1].kind, ArmKind::kDecoy);
}

// Else a scenario could pass that shows no remedy at all.
TEST(Roles, OfAllRemediesSkipTheScenario) {
  const ScenarioFile file =
      Load(std::string(kFault) + "remedies: {clip: {set: {role.clip_norm: 1}}}\n",
           {{"peak", "learning_rate"}});
  ASSERT_TRUE(file.scenario) << Messages(file);
  EXPECT_EQ(file.scenario->unserved, "role:clip_norm");
}

TEST(Roles, OfAFaultSkipTheScenario) {
  const std::string text = std::string(kFault) + "no_remedy: none\n";
  const ScenarioFile file = Load(text, {{"peak", ""}});
  ASSERT_TRUE(file.scenario) << Messages(file);
  EXPECT_EQ(file.scenario->unserved, "role:learning_rate");
  const ScenarioFile own = Load(text, {{"peak", ""}}, {.is_own = true});
  EXPECT_FALSE(own.scenario) << "a scenario of one's own is not skipped in silence";
  const ScenarioFile another =
      Load(text, {{"peak", ""}}, {.is_own = true, .elsewhere = {"role:learning_rate"}});
  EXPECT_TRUE(another.scenario);
}

// A portable scenario knows neither the values of a target's recipe nor their bounds.
TEST(Roles, OfValuesThatDoNotFitSkipTheScenario) {
  TargetDescription target = Target({{"peak", "learning_rate"}});  // 0.5, of 40 steps
  target.recipe[1].max = 4;                                        // of peak
  target.faults.push_back({.name = "process.crash_rank"});
  const auto load = [&](const std::string& text, bool is_own, int level) {
    target.level = level;
    return ParseScenario("apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\n" + text,
                         "test.yaml", target, {.is_own = is_own});
  };
  const std::string crash = "inject: {bad: {fault: process.crash_rank}}\n";
  const std::string dies = "symptoms: {dies: not ended(rank=0)}\nno_remedy: none\n";
  const std::string hot = "inject: {hot: {fault: recipe.high_lr, with: {factor: 2}}}\n";
  const std::string worse = "symptoms: {worse: 'last(loss[:]) > 1'}\n";
  struct Row {
    std::string text, unserved, says;
  };
  const std::vector<Row> rows = {
      {"inject: {bad: {fault: process.crash_rank, at: 50}}\n" + dies, "value:steps",
       "'at' is after the run's last step, 39"},
      {crash + "phases: [{name: a, until: 50}, {name: b}]\n" + dies, "value:steps",
       "the run ends after 40 steps"},
      {crash + "phases: [{name: a, until: 10}, {name: b, until: 20}]\n" + dies, "value:steps",
       "the last phase must go on to the end, after 40 steps"},
      {crash + "symptoms: {rises: 'mean(loss[50:60]) > 1'}\nno_remedy: none\n", "value:steps",
       "outside the run, which has 40 steps"},
      {hot + worse + "remedies: {r: {scale: {role.learning_rate: 10}}}\n", "value:peak",
       "'peak' becomes"},
      {hot + worse + "remedies: {r: {set: {role.learning_rate: 5}}}\n", "value:peak",
       "'peak' must be <= 4"},
      {crash + dies.substr(0, dies.find("no_")) +
           "remedies: {r: {set: {role.learning_rate: 0.5}}}\n",
       "value:peak", "'r' changes nothing"},
      {"inject: {hot: {fault: recipe.high_lr, with: {factor: 9}}}\n" + worse + "no_remedy: none\n",
       "value:peak", "fault 'hot' makes 'peak' 4.5"},
  };
  for (const auto& [text, unserved, says] : rows) {
    const ScenarioFile file = load(text, /*is_own=*/false, 0);
    EXPECT_TRUE(file.scenario) << text << Messages(file);
    if (!file.scenario) continue;
    EXPECT_EQ(file.scenario->unserved, unserved) << text;
    EXPECT_NE(file.scenario->misfit.find(says), std::string::npos) << file.scenario->misfit;
    EXPECT_NE(Messages(load(text, true, 0)).find(says), std::string::npos) << "one's own";
    EXPECT_NE(Messages(load(text, false, 2)).find(says), std::string::npos)
        << "of one that is ours";
  }
  // What the scenario itself sets is its own mistake.
  EXPECT_FALSE(load("recipe: {steps: 45}\n" + rows.front().text, false, 0).scenario);
  EXPECT_FALSE(
      load(crash + "symptoms: {rises: mean(los) > 1}\nno_remedy: none\n", false, 0).scenario);
}

// What an adapter brings along has names of its own.
TEST(Roles, OfAScenarioForAnAdapterMeanNothingWithoutIt) {
  const auto read = [](const std::string& requirement, bool is_own) {
    LoadOptions options;
    options.is_own = is_own;
    return ParseScenario(
        "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\n" + requirement +
            "inject: {bad: {fault: model.of_hooks}}\nsymptoms: {dies: eventually nonfinite(loss)}\n"
            "no_remedy: none\n",
        "test.yaml", TestTarget(), options);
  };
  const std::string needs = "requires: {features: [adapter:python]}\n";
  const ScenarioFile file = read(needs, /*is_own=*/false);
  ASSERT_TRUE(file.scenario) << Messages(file);
  EXPECT_EQ(file.scenario->unserved, "adapter:python");
  EXPECT_FALSE(read("", false).scenario);
  EXPECT_FALSE(read("requires: {features: [telepathy]}\n", false).scenario);
  EXPECT_FALSE(read(needs, /*is_own=*/true).scenario) << "one's own must fit one's own target";
}

TEST(Roles, ThatAreNoneAreErrors) {
  for (const auto& [role, says] : {std::pair{"learning_rat", "did you mean 'learning_rate'?"},
                                   {"cost", "unknown role 'cost'"}}) {
    const ScenarioFile file =
        Load(std::string(kFault) + "remedies: {r: {set: {role." + role + ": 1}}}\n",
             {{"peak", "learning_rate"}});
    EXPECT_FALSE(file.scenario);
    EXPECT_NE(Messages(file).find(says), std::string::npos) << Messages(file);
  }
  const ScenarioFile twice =
      Load(std::string("recipe: {peak: 1, role: {learning_rate: 2}}\n") + kFault + "no_remedy: x\n",
           {{"peak", "learning_rate"}});
  EXPECT_NE(Messages(twice).find("'peak' is given twice"), std::string::npos) << Messages(twice);
}

}  // namespace roles_test
}  // namespace trainwreck
