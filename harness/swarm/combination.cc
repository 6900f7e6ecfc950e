#include "harness/swarm/combination.h"

#include <algorithm>
#include <random>

#include "harness/plan/device.h"
#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

// Distributions of the standard library differ between implementations; these do not.
class Dice {
 public:
  Dice(std::uint64_t seed, int number) {
    std::seed_seq both{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                       static_cast<std::uint32_t>(number)};
    engine_.seed(both);
  }
  int Below(int count) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(count)); }
  int Between(int least, int most) { return least + Below(most - least + 1); }
  bool Percent(int share) { return Below(100) < share; }
  template <typename T>
  const T& Of(const std::vector<T>& values) {
    return values[Below(static_cast<int>(values.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

struct Axis {
  int percent;  // how often it is drawn
  std::vector<Recipe> choices;
};

// What is varied besides ranks, steps and faults. A target gets the keys that it has.
const std::vector<Axis>& Axes() {
  static const std::vector<Axis> axes = {
      {30, {{{"accumulation", 2}}, {{"accumulation", 3}}}},
      {90,
       {{{"checkpoint.every", 1}},
        {{"checkpoint.every", 2}},
        {{"checkpoint.every", 3}},
        {{"checkpoint.every", 5}}}},
      {40, {{{"checkpoint.keep", 1}}, {{"checkpoint.keep", 3}}}},
      {30, {{{"checkpoint.require_complete", true}}}},
      {20, {{{"checkpoint.on_failure", "go_on"}}}},
      {30, {{{"optimizer.kind", "adamw"}, {"optimizer.lr", 0.003}}}},
      {25,
       {{{"precision", "bf16"}},
        {{"precision", "fp16"}, {"scaler.kind", "dynamic"}},
        {{"precision", "fp16"}, {"scaler.kind", "static"}, {"scaler.init_scale", 256.0}}}},
      {40,
       {{{"parallel.check_every", 1}, {"parallel.on_desync", "stop"}},
        {{"parallel.check_every", 2}, {"parallel.on_desync", "broadcast"}},
        {{"parallel.check_every", 1}, {"parallel.on_desync", "rollback"}},
        {{"parallel.check_every", 1}}}},
      {30,
       {{{"loader.guard", "stop"}},
        {{"loader.guard", "drop_sample"}},
        {{"loader.guard", "skip_batch"}}}},
      {25, {{{"parallel.rendezvous", "tcp"}}}},
      {20, {{{"parallel.check_collectives", true}}}},
      {20, {{{"optimizer.clip_norm", 1.0}}}},
      {15, {{{"sampler.uneven", "drop_last"}}, {{"sampler.uneven", "pad"}}}},
      {15, {{{"diagnose.nonfinite", false}}}},
      {60,
       {{{"supervisor.max_restarts", 1}},
        {{"supervisor.max_restarts", 3}},
        {{"supervisor.max_restarts", 2}, {"supervisor.backoff_s", 0.1}},
        {{"supervisor.max_restarts", 1}, {"supervisor.window_s", 0.5}}}},
  };
  return axes;
}

// A moment in a run of so many steps; a fault that stops processes seldom comes back after a
// restart.
Trigger DrawTrigger(const Trigger& own, int steps, int ranks, Dice& dice) {
  Trigger trigger = own;
  trigger.phase.clear();
  if (own.from && own.to) {
    trigger.from = dice.Below(steps);
    trigger.to = dice.Between(*trigger.from, steps - 1);
  } else if (own.from) {
    trigger.from = dice.Below(steps);
    trigger.to.reset();
  } else {
    trigger.at = dice.Below(steps);
    trigger.to.reset();
    trigger.every = 1;
  }
  if (dice.Percent(own.ranks.empty() ? 30 : 100)) trigger.ranks = {dice.Below(ranks)};
  if (!own.attempt && dice.Percent(60)) trigger.attempt = 0;
  return trigger;
}

// A fault for so many ranks; without a name where none was found.
InjectedFault DrawFault(const SwarmPool::Source& source, const TargetDescription& target, int steps,
                        int ranks, Dice& dice) {
  InjectedFault fault = dice.Of(source.faults);
  const FaultInfo* info = target.FindFault(fault.fault);
  if (info == nullptr || info->min_ranks > ranks) return {};
  if (info->has_trigger && info->amends.empty()) {
    fault.trigger = DrawTrigger(fault.trigger, steps, ranks, dice);
  }
  return fault;
}

Recipe DrawRecipe(const SwarmPool::Source& source, const TargetDescription& target, int steps,
                  int ranks, Dice& dice) {
  Recipe recipe = source.changes;
  for (const Axis& axis : Axes()) {
    if (!dice.Percent(axis.percent)) continue;
    for (const auto& [key, value] : dice.Of(axis.choices)) recipe[key] = value;
  }
  recipe[kStepsKey] = steps;
  recipe[kRanksKey] = ranks;
  recipe["parallel.timeout_s"] = 20.0;  // the supervisor sees a hang first
  recipe["memory.limit_bytes"] = 0;     // its scenarios measure it for their own recipe
  std::erase_if(recipe, [&](const auto& entry) {
    const ParamInfo* key = target.FindRecipeKey(entry.first);
    return key == nullptr || key->default_value == entry.second ||
           !CheckValue(*key, entry.second).empty();
  });
  return recipe;
}

}  // namespace

SwarmPool PoolOf(const std::vector<Case>& cases, const TargetDescription& target) {
  SwarmPool pool;
  for (const Case& one : cases) {
    SwarmPool::Source source{.name = one.name};
    for (const ArmPlan& arm : one.arms) {
      if (arm.runs.empty()) continue;
      if (arm.kind == ArmKind::kFault) source.faults = arm.faults;
      if (arm.kind != ArmKind::kControl) continue;
      source.steps = arm.runs.front().steps;
      for (const auto& [key, value] : arm.runs.front().plan.recipe) {
        const ParamInfo* info = target.FindRecipeKey(key);
        if (key == kDeviceKey || info == nullptr || info->default_value == value) continue;
        source.changes[key] = value;
      }
    }
    if (!source.faults.empty()) pool.sources.push_back(std::move(source));
  }
  return pool;
}

Combination DrawCombination(const SwarmPool& pool, const TargetDescription& target,
                            std::uint64_t seed, int number) {
  Dice dice(seed, number);
  Combination drawn{.seed = seed, .number = number};
  const SwarmPool::Source& base = dice.Of(pool.sources);
  drawn.source = base.name;
  const int steps = dice.Between(5, 12);
  const int ranks = std::vector<int>{1, 2, 2, 2, 3, 3, 4}[dice.Below(7)];
  // One in ten is healthy. The others have a fault that belongs to the recipe, more often than not.
  const int faults = dice.Percent(10) ? 0 : dice.Between(1, 3);
  for (int tried = 0; tried < 20 && static_cast<int>(drawn.ingredients.size()) < faults; ++tried) {
    const bool is_own = drawn.ingredients.empty() && tried == 0 && dice.Percent(60);
    InjectedFault fault =
        DrawFault(is_own ? base : dice.Of(pool.sources), target, steps, ranks, dice);
    if (fault.fault.empty()) continue;
    fault.id = std::string(1, static_cast<char>('a' + drawn.ingredients.size()));
    drawn.ingredients.push_back({.fault = std::move(fault)});
  }
  for (const auto& [key, value] : DrawRecipe(base, target, steps, ranks, dice)) {
    drawn.ingredients.push_back({.fault = {}, .key = key, .value = value});
  }
  return drawn;
}

IngredientSet AllOf(const Combination& drawn) {
  IngredientSet all;
  for (int i = 0; i < static_cast<int>(drawn.ingredients.size()); ++i) all.insert(all.end(), i);
  return all;
}

Run RunOf(const Combination& drawn, const IngredientSet& with, const Changes& overrides,
          const TargetDescription& target, double budget_s) {
  Run run;
  run.scenario = "swarm";
  run.arm = "fault";
  run.kind = ArmKind::kFault;
  Recipe& recipe = run.plan.recipe;
  for (const ParamInfo& key : target.recipe) recipe[key.name] = key.default_value;
  for (const int index : with) {
    const Ingredient& one = drawn.ingredients.at(index);
    if (!one.is_fault()) recipe[one.key] = one.value;
  }
  Apply(overrides, recipe);
  for (const int index : with) {
    const InjectedFault& fault = drawn.ingredients.at(index).fault;
    const FaultInfo* info = target.FindFault(fault.fault);
    if (info == nullptr) continue;
    if (info->amends.empty()) {
      run.plan.faults.push_back({fault.id, fault.fault, fault.with, fault.trigger});
      continue;
    }
    for (const AmendedKey& change : Amend(*info, fault.with, recipe)) {
      run.amendments.push_back({fault.id, fault.fault, change.key, change.before, change.after});
    }
  }
  run.device = PickDevice(recipe, {}, target, {}).kind;
  if (!run.device.empty()) recipe[kDeviceKey] = run.device;
  run.seed = drawn.number;
  run.plan.seed = drawn.seed * 1'000'003 + static_cast<std::uint64_t>(drawn.number);
  run.plan.scenario = run.scenario;
  run.plan.arm = run.arm;
  SetPhases(run, {});
  run.policy = {.seconds = budget_s, .stall_seconds = 3};
  TakeFromRecipe(run, target);
  return run;
}

Json ToJson(const Combination& drawn, const IngredientSet& with) {
  Json json = {{"number", drawn.number}, {"source", drawn.source}, {"faults", Json::array()}};
  json["recipe"] = Json::object();
  for (const int index : with) {
    const Ingredient& one = drawn.ingredients.at(index);
    if (!one.is_fault()) {
      json["recipe"][one.key] = one.value;
      continue;
    }
    const Trigger& trigger = one.fault.trigger;
    Json fault = {{"id", one.fault.id}, {"fault", one.fault.fault}, {"with", one.fault.with}};
    if (trigger.at) fault["at"] = *trigger.at;
    if (trigger.from) fault["from"] = *trigger.from;
    if (trigger.to) fault["to"] = *trigger.to;
    if (trigger.attempt) fault["attempt"] = *trigger.attempt;
    if (!trigger.ranks.empty()) fault["ranks"] = trigger.ranks;
    json["faults"].push_back(std::move(fault));
  }
  return json;
}

}  // namespace trainwreck
