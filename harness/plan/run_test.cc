#include "harness/plan/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>

namespace trainwreck {
namespace {

void AddKey(TargetDescription& target, const char* name, ValueType type, Json value) {
  ParamInfo info;
  info.name = name;
  info.type = type;
  info.default_value = std::move(value);
  target.recipe.push_back(std::move(info));
}

TargetDescription MakeTarget() {
  TargetDescription target;
  AddKey(target, "optimizer.lr", ValueType::kNumber, 0.5);
  AddKey(target, "optimizer.clip_norm", ValueType::kNumber, 0.0);
  AddKey(target, "loader.guard", ValueType::kString, "none");
  AddKey(target, "schedule.warmup_steps", ValueType::kInt, 20);
  AddKey(target, "steps", ValueType::kInt, 100);
  AddKey(target, "parallel.ranks", ValueType::kInt, 1);
  target.features = {"device:cpu"};
  FaultInfo high_lr;
  high_lr.name = "recipe.high_lr";
  high_lr.amends = {{"optimizer.lr", Amendment::Op::kScale, "factor", Json()}};
  target.faults.push_back(high_lr);
  FaultInfo corrupt;
  corrupt.name = "data.corrupt_sample";
  target.faults.push_back(corrupt);
  AddHarnessVocabulary(target);
  return target;
}

Check MakeCheck(const std::string& name, const std::string& text) {
  return {name, *formula::Formula::Parse(text).formula, std::nullopt, "", {}, {}, ""};
}

Scenario MakeScenario() {
  Scenario scenario;
  scenario.name = "nan/test";
  scenario.recipe.set = {{"optimizer.lr", 0.1}};
  scenario.seed_count = scenario.seed_require = 5;
  scenario.faults.push_back({"hot", "recipe.high_lr", {{"factor", 15.0}}, {}, {}, ""});
  Remedy lower;
  lower.name = "lower";
  lower.changes.scale = {{"optimizer.lr", 0.1}};
  scenario.remedies.push_back(lower);
  Decoy clip;
  clip.name = "clip";
  clip.changes.set = {{"optimizer.clip_norm", 1.0}};
  scenario.decoys.push_back(clip);
  scenario.points.emplace_back();
  scenario.phases = {{"train", std::nullopt}};
  return scenario;
}

class PlanTest : public ::testing::Test {
 protected:
  const Case& Planned() {
    cases_ = PlanCases(scenarios_, target_, options_);
    return cases_.front();
  }
  static const ArmPlan& Arm(const Case& planned, const std::string& name) {
    for (const ArmPlan& arm : planned.arms) {
      if (arm.name == name) return arm;
    }
    throw std::runtime_error("no arm " + name);
  }
  static double LearningRate(const ArmPlan& arm) {
    return arm.runs.front().plan.recipe.at("optimizer.lr").get<double>();
  }
  Scenario& scenario() { return scenarios_.front(); }

  TargetDescription target_ = MakeTarget();
  std::vector<Scenario> scenarios_ = {MakeScenario()};
  PlanOptions options_;
  std::vector<Case> cases_;
};

TEST_F(PlanTest, MakesAnArmPerRemedyAndDecoyWithARunPerSeed) {
  const Case& planned = Planned();
  ASSERT_EQ(planned.arms.size(), 4u);
  EXPECT_EQ(planned.name, "nan/test");
  EXPECT_EQ(planned.arms[0].kind, ArmKind::kControl);
  EXPECT_EQ(planned.arms[1].kind, ArmKind::kFault);
  EXPECT_EQ(planned.arms[2].kind, ArmKind::kRemedy);
  EXPECT_EQ(planned.arms[3].kind, ArmKind::kDecoy);
  std::set<std::string> ids;
  for (const ArmPlan& arm : planned.arms) {
    ASSERT_EQ(arm.runs.size(), 5u);
    for (int seed = 0; seed < 5; ++seed) {
      const auto& run = arm.runs[seed];
      EXPECT_EQ(run.seed, seed);
      EXPECT_EQ(run.plan.seed, static_cast<std::uint64_t>(seed));
      EXPECT_EQ(run.plan.run, run.id);
      EXPECT_EQ(run.plan.arm, arm.name);
      EXPECT_EQ(run.steps, 100);
      ids.insert(run.id);
    }
  }
  EXPECT_EQ(ids.size(), 20u);
  EXPECT_TRUE(ids.contains("nan/test/lower/3"));
}

TEST_F(PlanTest, TheFaultStaysInWhileARemedyIsTested) {
  const Case& planned = Planned();
  EXPECT_DOUBLE_EQ(LearningRate(Arm(planned, "control")), 0.1);
  EXPECT_DOUBLE_EQ(LearningRate(Arm(planned, "fault")), 1.5);
  EXPECT_DOUBLE_EQ(LearningRate(Arm(planned, "lower")), 0.15);
  EXPECT_DOUBLE_EQ(LearningRate(Arm(planned, "clip")), 1.5);
  EXPECT_FALSE(Arm(planned, "lower").is_undo);
}

TEST_F(PlanTest, FaultsOfTheRecipeLeaveEvidenceAndStayInTheHarness) {
  const Case& planned = Planned();
  for (const char* arm : {"fault", "lower", "clip"}) {
    const auto& run = Arm(planned, arm).runs.front();
    ASSERT_EQ(run.amendments.size(), 1u) << arm;
    EXPECT_EQ(run.amendments[0].fault_id, "hot");
    EXPECT_EQ(run.amendments[0].fault, "recipe.high_lr");
    EXPECT_EQ(run.amendments[0].key, "optimizer.lr");
    EXPECT_EQ(run.amendments[0].before, 0.1);
    EXPECT_EQ(run.amendments[0].after, 1.5);
    EXPECT_TRUE(run.plan.faults.empty());
  }
  EXPECT_TRUE(Arm(planned, "control").runs.front().amendments.empty());
}

TEST_F(PlanTest, OtherFaultsGoToTheTarget) {
  scenario().faults.push_back({"bad", "data.corrupt_sample", {{"field", "input"}}, {}, {}, ""});
  scenario().faults.back().trigger.at = 7;
  const Case& planned = Planned();
  EXPECT_TRUE(Arm(planned, "control").runs.front().plan.faults.empty());
  for (const char* arm : {"fault", "lower", "clip"}) {
    const Plan& plan = Arm(planned, arm).runs.front().plan;
    ASSERT_EQ(plan.faults.size(), 1u) << arm;
    EXPECT_EQ(plan.faults[0].id, "bad");
    EXPECT_EQ(plan.faults[0].with.at("field"), "input");
    EXPECT_EQ(plan.faults[0].trigger.at, 7);
  }
}

TEST_F(PlanTest, PointsSetParametersAndChangeTheRecipe) {
  scenario().points = {{"mild", {}, {}, {{"hot", {{"factor", 3.0}}}}},
                       {"slow", {}, {{{"optimizer.lr", 0.01}}, {}}, {}}};
  Planned();
  ASSERT_EQ(cases_.size(), 2u);
  EXPECT_EQ(cases_[0].name, "nan/test[mild]");
  EXPECT_EQ(Arm(cases_[0], "fault").runs[2].id, "nan/test/mild/fault/2");
  EXPECT_EQ(Arm(cases_[0], "fault").runs[2].plan.point, "mild");
  EXPECT_DOUBLE_EQ(LearningRate(Arm(cases_[0], "fault")), 0.1 * 3);
  EXPECT_DOUBLE_EQ(LearningRate(Arm(cases_[1], "fault")), 0.01 * 15);
}

TEST_F(PlanTest, OverridesComeBeforeTheFault) {
  options_.overrides.set = {{"optimizer.lr", 0.2}};
  const Case& planned = Planned();
  EXPECT_DOUBLE_EQ(LearningRate(Arm(planned, "control")), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(Arm(planned, "lower")), 0.2 * 15 * 0.1);
}

TEST_F(PlanTest, ARemedyThatRestoresControlIsAnUndo) {
  scenario().remedies[0].changes = {{{"optimizer.lr", 0.1}}, {}};
  EXPECT_TRUE(Arm(Planned(), "lower").is_undo);
  EXPECT_TRUE(Arm(Planned(), "lower").runs.empty());
  scenario().remedies[0].changes = {{}, {{"optimizer.lr", 0.0666666667}}};
  EXPECT_TRUE(Arm(Planned(), "lower").is_undo);
  scenario().remedies[0].changes.set = {{"optimizer.clip_norm", 1.0}};
  EXPECT_TRUE(Arm(Planned(), "lower").is_undo) << "a change beside it makes no remedy of it";
  scenario().remedies[0].changes.scale = {{"optimizer.lr", 0.1}};
  EXPECT_FALSE(Arm(Planned(), "lower").is_undo);
}

TEST_F(PlanTest, ADeclaredUndoIsNotRun) {
  scenario().faults[0] = {"bad", "data.corrupt_sample", {}, {}, {}, ""};
  scenario().remedies[0].changes = {};
  scenario().remedies[0].is_undo = true;
  EXPECT_TRUE(Arm(Planned(), "lower").is_undo);
  EXPECT_TRUE(Arm(Planned(), "lower").runs.empty());
}

TEST_F(PlanTest, AFaultInTheTargetIsNeverUndoneByTheRecipe) {
  scenario().faults[0] = {"bad", "data.corrupt_sample", {}, {}, {}, ""};
  scenario().remedies[0].changes = {};
  EXPECT_FALSE(Arm(Planned(), "lower").is_undo);
}

TEST_F(PlanTest, RemediesAndDecoysOfOtherPointsAreLeftOut) {
  scenario().points = {{"sgd", {}, {}}, {"adamw", {}, {}}};
  scenario().remedies[0].when = {"sgd"};
  scenario().decoys[0].when = {"ada*"};
  Planned();
  EXPECT_NO_THROW(Arm(cases_[0], "lower"));
  EXPECT_THROW(Arm(cases_[0], "clip"), std::runtime_error);
  EXPECT_THROW(Arm(cases_[1], "lower"), std::runtime_error);
  EXPECT_NO_THROW(Arm(cases_[1], "clip"));
}

TEST_F(PlanTest, ASharedFirstPhaseIsControlsInAllArms) {
  scenario().phases = {{"train", 50, true}, {"resume", std::nullopt}};
  const Case& planned = Planned();
  const Recipe& healthy = Arm(planned, "control").runs.front().plan.recipe;
  for (const char* arm : {"control", "fault", "lower", "clip"}) {
    const auto& run = Arm(planned, arm).runs.front();
    EXPECT_EQ(FirstPlan(run).recipe, healthy) << arm;
    EXPECT_TRUE(FirstPlan(run).faults.empty()) << arm;
    EXPECT_TRUE(run.copies_first_phase) << arm;
    for (const auto& [key, value] : run.plan.recipe) {
      EXPECT_EQ(run.later_changes.contains(key), value != healthy.at(key)) << arm << " " << key;
    }
  }
  EXPECT_NE(Arm(planned, "fault").runs.front().plan.recipe, healthy);
}

TEST_F(PlanTest, PhasesAreTheSameInControlAndOneInTheReference) {
  scenario().phases = {{"train", 50}, {"resume", std::nullopt}};
  scenario().has_reference = true;
  const Case& planned = Planned();
  for (const char* arm : {"control", "fault", "lower", "clip"}) {
    const auto& run = Arm(planned, arm).runs.front();
    EXPECT_EQ(run.phases.size(), 2u);
    EXPECT_EQ(run.plan.until, 50);
    EXPECT_FALSE(run.plan.resume);
    EXPECT_EQ(run.cost, 200);
  }
  const auto& reference = Arm(planned, "reference").runs.front();
  EXPECT_EQ(reference.phases.size(), 1u);
  EXPECT_EQ(reference.plan.until, std::nullopt);
  EXPECT_TRUE(reference.plan.faults.empty());
  EXPECT_DOUBLE_EQ(LearningRate(Arm(planned, "reference")), 0.1);
}

TEST_F(PlanTest, RecordsWhatTheFormulasOfThePointRead) {
  scenario().symptoms.push_back(MakeCheck("frozen", "always update_norm{head.*} <= 0"));
  scenario().healthy.push_back(
      MakeCheck("moves", "mean(grad_norm{block.0.*}[:5]) > 0 and mean(loss[:5]) > 0"));
  scenario().symptoms.push_back(MakeCheck("elsewhere", "always update_norm{tail} <= 0"));
  scenario().symptoms.back().when = {"other"};
  const Case& planned = Planned();
  const std::vector<std::string> expected = {"grad_norm{block.0.*}", "loss", "update_norm{head.*}"};
  for (const ArmPlan& arm : planned.arms) EXPECT_EQ(arm.runs[0].plan.record, expected);
}

TEST_F(PlanTest, RecordsTheEventsThatAreWrittenOnDemand) {
  target_.events.push_back({"born", {}, "", true});
  target_.events.push_back({"saved", {}, ""});
  scenario().symptoms = {MakeCheck("born", "event(born) and not event(saved)")};
  scenario().healthy = {MakeCheck("learns", "at_end loss < 3")};
  const std::vector<std::string> expected = {"born", "loss"};
  for (const ArmPlan& arm : Planned().arms) EXPECT_EQ(arm.runs[0].plan.record, expected);
}

TEST_F(PlanTest, RunsThatMayWaitForARankAreKnown) {
  scenario().budget = {30, 3};
  EXPECT_EQ(Arm(Planned(), "fault").runs.front().may_wait_seconds, 0);
  scenario().symptoms = {MakeCheck("waits", "stalled(lagging_rank=1)")};
  const Case& planned = Planned();
  EXPECT_EQ(Arm(planned, "control").runs.front().may_wait_seconds, 0);
  EXPECT_EQ(Arm(planned, "fault").runs.front().may_wait_seconds, 3);
}

TEST_F(PlanTest, RanksAndThePolicyComeFromTheRecipe) {
  scenario().recipe.set.push_back({"parallel.ranks", 2});
  scenario().budget = {30, 3};
  scenario().remedies[0].changes.set = {{"supervisor.max_restarts", 2},
                                        {"supervisor.backoff_s", 0.5},
                                        {"supervisor.window_s", 60},
                                        {"supervisor.stall_s", 1.5}};
  const Case& planned = Planned();
  const auto& fault = Arm(planned, "fault").runs.front();
  EXPECT_EQ(fault.ranks, 2);
  EXPECT_EQ(fault.cost, 200);
  EXPECT_EQ(fault.policy.max_restarts, 0);
  EXPECT_EQ(fault.policy.seconds, 30);
  EXPECT_EQ(fault.policy.stall_seconds, 3);
  const auto& remedy = Arm(planned, "lower").runs.front();
  EXPECT_EQ(remedy.policy.max_restarts, 2);
  EXPECT_EQ(remedy.policy.backoff_seconds, 0.5);
  EXPECT_EQ(remedy.policy.window_seconds, 60);
  EXPECT_EQ(remedy.policy.stall_seconds, 1.5);
}

TEST_F(PlanTest, LaterStartsMayHaveOtherRanks) {
  ParamInfo key;
  key.name = "supervisor.resume_ranks";
  key.type = ValueType::kInt;
  key.default_value = 0;
  target_.recipe.push_back(key);
  scenario().recipe.set.push_back({"parallel.ranks", 2});
  scenario().remedies[0].changes.set = {{"supervisor.resume_ranks", 4}};
  const Case& planned = Planned();
  const auto& fault = Arm(planned, "fault").runs.front();
  EXPECT_EQ(fault.ranks, 2);
  EXPECT_EQ(fault.resume_ranks, 0);
  const auto& remedy = Arm(planned, "lower").runs.front();
  EXPECT_EQ(remedy.ranks, 4);
  EXPECT_EQ(remedy.first_ranks, 2);
  EXPECT_EQ(remedy.resume_ranks, 4);
}

TEST_F(PlanTest, TheHarnessPicksTheDevice) {
  ParamInfo key;
  key.name = "device";
  key.type = ValueType::kString;
  key.default_value = "auto";
  key.choices = {"auto", "cpu", "cuda"};
  auto device = [&] { return Arm(Planned(), "fault").runs.front().plan.recipe.at("device"); };
  auto reason = [&] { return Planned().skip_reason; };
  EXPECT_TRUE(Planned().devices.empty());  // the target has no such key

  target_.recipe.push_back(key);
  EXPECT_EQ(device(), "cpu");
  EXPECT_EQ(Planned().devices, std::vector<std::string>{"cpu"});
  target_.devices = {{"cpu", "", 0}, {"cuda", "GPU", 1 << 30}};
  target_.features.push_back("device:cuda");
  EXPECT_EQ(device(), "cuda");
  EXPECT_EQ(Arm(Planned(), "control").runs.front().device, "cuda");
  scenario().requires_.devices = {"cpu"};
  EXPECT_EQ(device(), "cpu");

  // One GPU does not do for two ranks: the CPU, unless the scenario insists.
  scenario().requires_.devices = {};
  scenario().recipe.set.push_back({"parallel.ranks", 2});
  EXPECT_EQ(device(), "cpu");
  scenario().requires_.devices = {"cuda"};
  EXPECT_EQ(reason(), "requires:device:cuda:2");
  EXPECT_TRUE(Planned().arms.empty());
  target_.devices.push_back(target_.devices.back());
  EXPECT_EQ(reason(), "");
  EXPECT_EQ(device(), "cuda");

  // Nor do two for a run that a third rank joins later.
  key.name = "supervisor.resume_ranks";
  key.type = ValueType::kInt;
  key.default_value = 0;
  key.choices = {};
  target_.recipe.push_back(key);
  scenario().remedies[0].changes.set = {{"supervisor.resume_ranks", 3}};
  EXPECT_EQ(reason(), "requires:device:cuda:3");
}

TEST_F(PlanTest, RanksOfAnotherLauncherMayHaveTheirGpusElsewhere) {
  ParamInfo key;
  key.name = "device";
  key.type = ValueType::kString;
  key.default_value = "auto";
  key.choices = {"auto", "cpu", "cuda"};
  target_.recipe.push_back(key);
  key.name = "parallel.launcher";
  key.default_value = "own";
  key.choices = {"own", "srun"};
  target_.recipe.push_back(key);
  target_.devices = {{"cpu", "", 0}, {"cuda", "GPU", 1 << 30}};
  target_.features.push_back("device:cuda");
  scenario().recipe.set.push_back({"parallel.ranks", 2});
  scenario().recipe.set.push_back({"device", "cuda"});
  EXPECT_EQ(Planned().skip_reason, "requires:device:cuda:2");
  scenario().recipe.set.push_back({"parallel.launcher", "srun"});
  EXPECT_EQ(Planned().skip_reason, "");
  EXPECT_EQ(Arm(Planned(), "fault").runs.front().device, "cuda");
  scenario().recipe.set.push_back({"device", "auto"});
  EXPECT_EQ(Arm(Planned(), "fault").runs.front().device, "cpu") << "nobody knows their machines";
}

TEST_F(PlanTest, ADeviceThatIsNamedAndNotThereSkipsTheCase) {
  ParamInfo key;
  key.name = "device";
  key.type = ValueType::kString;
  key.default_value = "auto";
  key.choices = {"auto", "cpu", "cuda"};
  target_.recipe.push_back(key);
  options_.overrides.set = {{"device", "cuda"}};
  EXPECT_EQ(Planned().skip_reason, "requires:device:cuda");
  target_.devices = {{"cpu", "", 0}, {"cuda", "GPU", 1 << 30}};
  target_.features.push_back("device:cuda");
  EXPECT_EQ(Planned().skip_reason, "");
  scenario().requires_.devices = {"cpu"};  // of a budget that only a CPU keeps, say
  EXPECT_EQ(Planned().skip_reason, "requires:device:cpu");
  scenario().requires_.devices = {};
  target_.features.pop_back();
  options_.overrides.set = {};
  scenario().remedies[0].changes.set = {{"device", "cuda"}};  // one arm is enough
  EXPECT_EQ(Planned().skip_reason, "requires:device:cuda");
}

TEST_F(PlanTest, OtherNumbersOfSeedsKeepTheRequiredShare) {
  scenario().seed_count = 10;
  scenario().seed_require = 9;
  for (auto [seeds, require] : {std::pair{0, 9}, {1, 1}, {5, 5}, {10, 9}, {20, 18}, {21, 19}}) {
    options_.seeds = seeds;
    EXPECT_EQ(Planned().seed_require, require) << seeds;
    EXPECT_EQ(Planned().arms[0].runs.size(), static_cast<std::size_t>(seeds ? seeds : 10));
  }
}

TEST_F(PlanTest, WhatIsMissingSkipsTheCase) {
  auto reason = [&] { return Planned().skip_reason; };
  EXPECT_EQ(reason(), "");
  scenario().requires_.devices = {"cpu", "cuda"};
  EXPECT_EQ(reason(), "requires:device:cuda");
  EXPECT_TRUE(Planned().arms.empty());
  options_.available_features = {"device:cuda"};
  EXPECT_EQ(reason(), "");
  scenario().requires_.features = {"backend:nccl"};
  EXPECT_EQ(reason(), "requires:backend:nccl");
  scenario().requires_ = {};
  scenario().requires_.memory_bytes = std::int64_t{1} << 60;
  EXPECT_EQ(reason(), "requires:memory:1099511627776MiB");
  scenario().requires_ = {};
  scenario().requires_.ranks = 4;
  EXPECT_EQ(reason(), "");
  for (ParamInfo& key : target_.recipe) {
    if (key.name == "parallel.ranks") key.max = 2;
  }
  EXPECT_EQ(reason(), "requires:ranks:4");
  scenario().requires_ = {};
  target_.faults[0].features = {"backend:gloo"};
  EXPECT_EQ(reason(), "requires:backend:gloo");
}

TEST(Plan, CasesOutliveTheScenariosTheyWerePlannedFrom) {
  auto scenarios = std::make_unique<std::vector<Scenario>>(1, MakeScenario());
  scenarios->front().points = {{"sgd", {}, {}}, {"adamw", {}, {}}};
  const std::vector<Case> cases = PlanCases(*scenarios, MakeTarget(), {});
  for (Scenario& scenario : *scenarios) {
    scenario.name = "gone";
    scenario.points.clear();
    scenario.remedies.clear();
    scenario.decoys.clear();
  }
  scenarios.reset();
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].scenario, cases[1].scenario) << "points share one scenario";
  EXPECT_EQ(cases[0].scenario->name, "nan/test");
  EXPECT_EQ(cases[1].point->name, "adamw");
  EXPECT_EQ(cases[1].arms.at(2).remedy->name, "lower");
  EXPECT_EQ(cases[1].arms.at(3).decoy->name, "clip");
}

// A fault of a file may say something else tomorrow.
TEST(Plan, DigestKnowsWhatAFaultDoesToTheRecipe) {
  const std::vector<Scenario> scenarios = {MakeScenario()};
  TargetDescription target = MakeTarget();
  const auto digest = [&] { return PlanCases(scenarios, target, {}).at(0).digest; };
  const std::string before = digest();
  EXPECT_EQ(digest(), before);
  target.faults[0].doc = "Other words.";
  EXPECT_EQ(digest(), before);
  target.faults[0].amends[0].op = Amendment::Op::kSet;
  const std::string set = digest();
  EXPECT_NE(set, before);
  target.faults[0].amends[0].key = "optimizer.clip_norm";
  EXPECT_NE(digest(), set);
}

}  // namespace
}  // namespace trainwreck
