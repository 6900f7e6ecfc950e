#include "harness/checkup/clues.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "harness/protocol/digest.h"
#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

using formula::Formula;
using formula::Truth;

// As symptoms name the uninterrupted run.
constexpr const char* kReferenceArm = "reference";

const RunResult* Find(const BatchResults& results, const std::string& variant, int seed) {
  auto found = results.find(variant);
  if (found == results.end()) return nullptr;
  auto run = found->second.find(seed);
  return run == found->second.end() ? nullptr : &run->second;
}

bool Fits(const Variant& variant, const Run& given) {
  const Reach reach = ReachOf(given);
  switch (variant.about) {
    case About::kGiven:
    case About::kRepetition:
      return variant.is_possible;
    case About::kTraining:
      return variant.is_possible && !reach.ranks && !reach.phases;
    case About::kInterruption:
      return variant.is_possible && reach.phases;
    case About::kRanks:
      return variant.is_possible && reach.ranks;
  }
  return false;
}

// Whether the variant trains exactly as the given run does.
bool IsTheGivenRun(const Variant& variant, const Run& given) {
  if (variant.about == About::kGiven) return true;
  if (variant.about != About::kTraining) return false;
  Recipe changed = given.plan.recipe;
  Apply(variant.changes, changed);
  return changed == given.plan.recipe;
}

// A part that misbehaves on another rank, or in what ranks say to each other, is not there.
void LeaveOneRank(Run& run, const TargetDescription& target) {
  std::erase_if(run.plan.faults, [&](const PlannedFault& fault) {
    const FaultInfo* info = target.FindFault(fault.fault);
    const std::vector<int>& ranks = fault.trigger.ranks;
    return (info != nullptr && info->min_ranks > 1) ||
           (!ranks.empty() && std::count(ranks.begin(), ranks.end(), 0) == 0);
  });
}

Run VariantOf(const Run& given, const Variant& variant, const TargetDescription& target) {
  Run run = given;
  SetArm(run, variant.name);
  Apply(variant.changes, run.plan.recipe);
  if (variant.about == About::kRanks) LeaveOneRank(run, target);
  if (variant.about == About::kInterruption || variant.about == About::kRanks) {
    SetPhases(run, {});
    run.later_changes = {};
    TakeFromRecipe(run, target);
  }
  return run;
}

}  // namespace

Reach ReachOf(const Run& given) {
  return {.ranks = given.ranks > 1, .phases = given.phases.size() > 1};
}

std::vector<Variant> VariantsOf(const Recipe& recipe, const TargetDescription& target) {
  const RecipeView view(recipe, &target);
  const int ranks = view.Int(kRanksKey).value_or(1);
  const int at_once = ranks * view.Int(KeyRole::kAccumulation).value_or(1);
  const int in_step = at_once * view.Int(KeyRole::kBatchSize).value_or(1);
  const int pairs = 2 * at_once;
  // Empty for a role without a key in the target: the variant is then not possible.
  const auto key = [&](KeyRole role) {
    const ParamInfo* found = KeyWithRole(target, role);
    return found == nullptr ? std::string() : found->name;
  };
  std::vector<Variant> variants = {
      {kGiven, "as given", {}, About::kGiven},
      {"lr_10", "LR / 10", {.set = {}, .scale = {{key(KeyRole::kLearningRate), 0.1}}}},
      {"clip", "clip 1.0", {.set = {{key(KeyRole::kClipNorm), 1.0}}, .scale = {}}},
      {"fp32", "fp32", {.set = {{key(KeyRole::kPrecision), "fp32"}}, .scale = {}}},
      {"two_examples",
       "two examples",
       {.set = {{key(KeyRole::kSamples), pairs}, {key(KeyRole::kBatchSize), 2}}, .scale = {}}},
      {"one_batch", "one batch", {.set = {{key(KeyRole::kSamples), in_step}}, .scale = {}}},
      {"guard", "data checked", {.set = {{key(KeyRole::kLoaderGuard), "stop"}}, .scale = {}}},
      {"again", "the same again", {}, About::kRepetition},
      {kUninterrupted, "without the interruption", {}, About::kInterruption},
      {"one_rank",
       "on one rank",
       {.set = {{kRanksKey, 1},
                {key(KeyRole::kBatchSize), ranks * view.Int(KeyRole::kBatchSize).value_or(1)}},
        .scale = {}},
       About::kRanks},
  };
  for (Variant& variant : variants) {
    for (const auto& [key, value] : variant.changes.set) {
      const ParamInfo* info = target.FindRecipeKey(key);
      variant.is_possible &= info != nullptr && CheckValue(*info, value).empty();
    }
    for (const auto& [key, factor] : variant.changes.scale) {
      variant.is_possible &= target.FindRecipeKey(key) != nullptr;
    }
  }
  return variants;
}

ClueSet::ClueSet(const std::vector<SuiteSymptom>& symptoms, const TargetDescription& target)
    : target_(target), variants_(VariantsOf({}, target)) {
  std::set<std::string> seen;
  for (const SuiteSymptom& symptom : symptoms) {
    const Formula& formula = symptom.check.formula;
    std::set<std::string> arms = formula.arms();
    arms.erase(kReferenceArm);
    // Nobody has the healthy run of a recipe that needs a checkup.
    if (arms.empty() && seen.insert(formula.text()).second) symptoms_.push_back(formula);
  }
}

// Does it learn, is it finite, what do statistics of gradients, parameters and activations look
// like: the questions of every checklist, in the words of formulas.
std::vector<std::string> ClueSet::questions(int steps) {
  const int tail = std::max(1, steps / 5), head = std::clamp(steps / 10, 1, 5);
  const std::string end = fmt::format("mean(loss[-{}:])", tail);
  const std::string start = fmt::format("mean(loss[:{}])", head);
  return {
      "never nonfinite(loss)",
      "ended(rank=0, why=completed)",
      end + " < 0.8 * " + start,
      end + " < 0.2 * " + start,
      "max(loss[:]) > 1.2 * " + start,
      end + " < 0.8 * given." + end,
      end + " > 1.25 * given." + end,
      fmt::format("std(loss[-{0}:]) > 0.3 * mean(loss[-{0}:])", tail),
      fmt::format("{} < 0.95 * mean(entropy_floor[-{}:])", end, tail),
      "eventually spike(grad_norm, ratio=4, window=8)",
      "median(grad_norm[:]) < 1e-6",
      "any_module(always updated{*} == 0)",
      "always updated == 0",
      "mean(update_norm[:]) < 1e-4 * mean(param_norm[:])",
      "last(param_norm[:]) < 0.5 * first(param_norm[:])",
      "any_module(always act_zero_share{*} > 0.9)",
      "any_module(always act_saturated_share{*} > 0.9)",
      "any_module(always act_std{*} < 1e-3)",
      "any_module(always grad_zero_share{*} > 0.9)",
      fmt::format("last(skipped_updates[:]) > {}", steps / 2),
      "event(nonfinite_batch)",
      "event(sample_rejected)",
      "event(exception)",
      "event(first_nonfinite, stage=data)",
      "event(first_nonfinite, stage=parameters)",
      "event(first_nonfinite, stage=forward)",
      "event(first_nonfinite, stage=backward)",
      "last(param_digest[:]) == given.last(param_digest[:])",
      "always sample_digest == given.sample_digest",
      "always lr == given.lr",
      "loss[0] == given.loss[0]",
      "eventually[:1] abs(grad_norm - given.grad_norm) > 0.05 * given.grad_norm",
      "grad_norm[0] > 2 * given.grad_norm[0]",
      "always spread(param_digest) == 0",
      "eventually[0:0] spread(param_digest) > 0",
      "min(update_s[1:]) > 0.17 * (min(forward_s[1:]) + min(backward_s[1:]))",
      "min(comm_s[1:]) > 0.4 * mean(step_s[1:])",
      "stalled",
      "collective_mismatch()",
      "restarted",
      "exited(signal=9)",
      "event(desync)",
      "event(resumed)",
      "event(checkpoint_damaged)",
      "event(checkpoint_failed)",
  };
}

std::vector<Formula> ClueSet::FormulasFor(int steps) const {
  std::vector<Formula> formulas;
  for (const std::string& text : questions(steps)) {
    formulas.push_back(*Formula::Parse(text).formula);
  }
  formulas.insert(formulas.end(), symptoms_.begin(), symptoms_.end());
  return formulas;
}

std::string ClueSet::TextOf(int clue, int steps) const {
  const std::size_t each = clues_per_variant(), index = static_cast<std::size_t>(clue);
  return variants_[index / each].what + ": " + FormulasFor(steps)[index % each].text();
}

std::string ClueSet::digest() const {
  std::string all;
  for (const Variant& variant : variants_) all += variant.name + "\n";
  for (const Formula& formula : FormulasFor(100)) all += formula.text() + "\n";
  return DigestText(all);
}

Batch ClueSet::RunsFor(const Run& given) const {
  std::set<std::string> record(given.plan.record.begin(), given.plan.record.end());
  for (const Formula& formula : FormulasFor(given.steps)) {
    for (std::string& signal : formula.asked(target_)) record.insert(std::move(signal));
  }
  Batch runs;
  for (const Variant& variant : VariantsOf(given.plan.recipe, target_)) {
    if (!Fits(variant, given)) continue;
    if (variant.about != About::kGiven && IsTheGivenRun(variant, given)) continue;
    runs.push_back(VariantOf(given, variant, target_));
    runs.back().plan.record = {record.begin(), record.end()};
  }
  return runs;
}

ClueReadings ClueSet::Read(const Run& given, const BatchResults& results) const {
  formula::Vocabulary vocabulary;
  vocabulary.target = &target_;
  vocabulary.arms = {kGiven, kReferenceArm};
  vocabulary.planned_steps = given.steps;
  vocabulary.world_size = given.ranks;
  const std::vector<Formula> formulas = FormulasFor(given.steps);
  const RunResult* base = Find(results, kGiven, given.seed);
  const RunResult* reference = Find(results, kUninterrupted, given.seed);
  ClueReadings readings;
  for (const Variant& variant : VariantsOf(given.plan.recipe, target_)) {
    const RunResult* run = Find(results, variant.name, given.seed);
    if (run == nullptr && Fits(variant, given) && IsTheGivenRun(variant, given)) run = base;
    for (const Formula& formula : formulas) {
      Truth truth = Truth::kUnknown;
      if (run != nullptr && formula.Check(vocabulary).empty()) {
        formula::Runs runs{.self = &run->trace, .arms = {}};
        if (base != nullptr) runs.arms[kGiven] = &base->trace;
        if (reference != nullptr) runs.arms[kReferenceArm] = &reference->trace;
        truth = formula.Evaluate(runs, target_).truth;
      }
      readings.push_back(truth);
    }
  }
  return readings;
}

std::string TextOf(const Changes& changes) {
  std::string text;
  for (const auto& [key, value] : changes.set) {
    text += (text.empty() ? "" : ", ") + key + " = " + value.dump();
  }
  for (const auto& [key, factor] : changes.scale) {
    text += (text.empty() ? "" : ", ") + fmt::format("{} x {:g}", key, factor);
  }
  return text;
}

}  // namespace trainwreck
