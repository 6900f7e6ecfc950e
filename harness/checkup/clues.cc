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

const RunResult* Find(const BatchResults& results, const std::string& variant, int seed) {
  auto found = results.find(variant);
  if (found == results.end()) return nullptr;
  auto run = found->second.find(seed);
  return run == found->second.end() ? nullptr : &run->second;
}

// The variants that differ from the given recipe.
std::vector<Variant> ToRun(const Run& given, const TargetDescription& target) {
  std::vector<Variant> differing;
  for (Variant& variant : VariantsOf(given.plan.recipe, target)) {
    if (!variant.is_possible) continue;
    Recipe changed = given.plan.recipe;
    Apply(variant.changes, changed);
    if (variant.name == kGiven || changed != given.plan.recipe) {
      differing.push_back(std::move(variant));
    }
  }
  return differing;
}

}  // namespace

std::vector<Variant> VariantsOf(const Recipe& recipe, const TargetDescription& target) {
  const RecipeView view(recipe, &target);
  const int at_once =
      view.Int(kRanksKey).value_or(1) * view.Int(KeyRole::kAccumulation).value_or(1);
  const int in_step = at_once * view.Int(KeyRole::kBatchSize).value_or(1);
  const int pairs = 2 * at_once;
  // Empty for a role without a key in the target: the variant is then not possible.
  const auto key = [&](KeyRole role) {
    const ParamInfo* found = KeyWithRole(target, role);
    return found == nullptr ? std::string() : found->name;
  };
  std::vector<Variant> variants = {
      {kGiven, "as given", {}},
      {"lr_10", "LR / 10", {.set = {}, .scale = {{key(KeyRole::kLearningRate), 0.1}}}},
      {"clip", "clip 1.0", {.set = {{key(KeyRole::kClipNorm), 1.0}}, .scale = {}}},
      {"fp32", "fp32", {.set = {{key(KeyRole::kPrecision), "fp32"}}, .scale = {}}},
      {"two_examples",
       "two examples",
       {.set = {{key(KeyRole::kSamples), pairs}, {key(KeyRole::kBatchSize), 2}}, .scale = {}}},
      {"one_batch", "one batch", {.set = {{key(KeyRole::kSamples), in_step}}, .scale = {}}},
      {"guard", "data checked", {.set = {{key(KeyRole::kLoaderGuard), "stop"}}, .scale = {}}},
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
    // Nobody has the healthy run of a recipe that needs a checkup.
    if (formula.arms().empty() && seen.insert(formula.text()).second) symptoms_.push_back(formula);
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
  const std::size_t slash = given.id.rfind('/');
  for (const Variant& variant : ToRun(given, target_)) {
    Run run = given;
    run.arm = run.plan.arm = variant.name;
    run.id = given.id.substr(0, slash) + "/" + variant.name + given.id.substr(slash);
    run.plan.run = run.id;
    Apply(variant.changes, run.plan.recipe);
    run.plan.record = {record.begin(), record.end()};
    runs.push_back(std::move(run));
  }
  return runs;
}

ClueReadings ClueSet::Read(const Run& given, const BatchResults& results) const {
  formula::Vocabulary vocabulary;
  vocabulary.target = &target_;
  vocabulary.arms = {kGiven};
  vocabulary.planned_steps = given.steps;
  vocabulary.world_size = given.ranks;
  const std::vector<Formula> formulas = FormulasFor(given.steps);
  const RunResult* base = Find(results, kGiven, given.seed);
  ClueReadings readings;
  for (const Variant& variant : VariantsOf(given.plan.recipe, target_)) {
    const RunResult* run = Find(results, variant.name, given.seed);
    if (run == nullptr && variant.is_possible) run = base;  // it would have been the same run
    for (const Formula& formula : formulas) {
      Truth truth = Truth::kUnknown;
      if (run != nullptr && formula.Check(vocabulary).empty()) {
        formula::Runs runs{.self = &run->trace, .arms = {}};
        if (base != nullptr) runs.arms[kGiven] = &base->trace;
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
