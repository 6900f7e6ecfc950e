#include "harness/spec/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "harness/spec/defaults.h"
#include "harness/spec/extends.h"
#include "harness/spec/reader.h"
#include "harness/spec/strength.h"
#include "harness/spec/validate.h"
#include "harness/text/glob.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {
namespace {

// A whole number stays one where the product is whole; elsewhere validation has complained.
Json Scaled(const Json& value, double factor) {
  if (!value.is_number()) return value;
  const double product = value.get<double>() * factor;
  const double whole = std::round(product);
  constexpr double kRounding = 1e-9;  // 70 * 0.1 is not quite 7
  constexpr double kLargest = 9e15;
  if (value.is_number_integer() && std::fabs(whole) < kLargest &&
      std::fabs(product - whole) <= kRounding * std::max(1.0, std::fabs(product))) {
    return static_cast<std::int64_t>(whole);
  }
  return product;
}

// The first name that may well be lacking here; empty: none, or one that must not be.
std::string LackingName(const std::vector<std::string>& unserved, const LoadOptions& options) {
  for (const std::string& what : unserved) {
    if (options.is_own && !IsElsewhere(what, options)) return "";
  }
  return unserved.empty() ? "" : unserved.front();
}

bool IsScenarioName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '/';
  });
}

// A scenario that does not say its name is called by its path.
void NameByPath(Scenario& scenario, const LoadOptions& options, Errors& errors) {
  scenario.name = NameBelow(scenario.file, options.scenarios_root);
  if (scenario.name.empty()) scenario.name = std::filesystem::path(scenario.file).stem().string();
  if (IsScenarioName(scenario.name)) return;
  errors.Add(0, {}, "the file's path gives no name: '" + scenario.name + "'",
             "use a-z, 0-9, '-' and '_' for files and folders, or give it a 'name'");
  scenario.name.clear();
}

}  // namespace

bool IsElsewhere(const std::string& what, const LoadOptions& options) {
  return options.elsewhere.contains(what) || options.elsewhere.contains("*");
}

ScenarioFile LoadScenario(const std::string& path, const TargetDescription& target,
                          const LoadOptions& options) {
  ScenarioFile file;
  if (IsDefaultsFile(path)) {
    file.errors.push_back({path,
                           {},
                           "this is no scenario: it holds the defaults of its folder",
                           "a scenario cannot be called 'defaults'",
                           ""});
    return file;
  }
  if (IsInvariantsFile(path)) {
    file.errors.push_back({path,
                           {},
                           "this is no scenario: it holds invariants",
                           "a scenario cannot be called 'invariants'",
                           ""});
    return file;
  }
  std::string why;
  std::optional<std::string> text = ReadSmallFile(path, why);
  if (text) return ParseScenario(*text, path, target, options);
  file.errors.push_back({path, {}, "cannot read the scenario: " + why, "", ""});
  return file;
}

ScenarioFile ParseScenario(const std::string& text, const std::string& file,
                           const TargetDescription& target, const LoadOptions& options) {
  Errors errors;
  ScenarioFile result;
  if (std::optional<YamlNode> root = ParseWithExtends(text, file, options, errors)) {
    const YamlNode* name = root->IsMap() ? root->Find("name") : nullptr;
    std::optional<Strength> strength =
        ApplyStrength(*root, name != nullptr ? name->text : NameBelow(file, options.scenarios_root),
                      target.calibration, errors);
    Draft draft = ReadScenario(*root, target, errors);
    draft.scenario.strength = std::move(strength);
    draft.scenario.file = file;
    draft.scenario.invariants = options.invariants;
    if (root->IsMap() && root->Find("name") == nullptr) NameByPath(draft.scenario, options, errors);
    for (int source = 1; source < errors.SourceCount(); ++source) {
      std::vector<std::string>& extended = draft.scenario.extended;
      const std::string& name = errors.SourceName(source);
      if (std::count(extended.begin(), extended.end(), name) == 0) extended.push_back(name);
    }
    Validate(draft, target, options, errors);
    draft.scenario.unserved = LackingName(errors.unserved(), options);
    if (draft.scenario.unserved.starts_with(kValuePrefix) && !errors.empty()) {
      draft.scenario.misfit = errors.Sorted().front().message;
    }
    // Written for another target: against this one the rest of it means nothing.
    const bool is_known = !draft.scenario.name.empty();
    if (errors.empty() || (!draft.scenario.unserved.empty() && is_known)) {
      result.scenario = std::move(draft.scenario);
    }
  }
  if (!result.scenario) result.errors = errors.Sorted();
  return result;
}

Recipe ResolveRecipe(const TargetDescription& target, const Scenario& scenario, const Point& point,
                     const Changes& overrides) {
  Recipe recipe;
  for (const ParamInfo& info : target.recipe) recipe[info.name] = info.default_value;
  Apply(scenario.recipe, recipe);
  Apply(point.changes, recipe);
  Apply(overrides, recipe);
  return recipe;
}

void Apply(const Changes& changes, Recipe& recipe) {
  for (const auto& [key, value] : changes.set) recipe[key] = value;
  for (const auto& [key, factor] : changes.scale) recipe[key] = Scaled(recipe[key], factor);
}

std::vector<AmendedKey> Amend(const FaultInfo& fault, const std::map<std::string, Json>& with,
                              Recipe& recipe) {
  std::vector<AmendedKey> amended;
  for (const Amendment& amendment : fault.amends) {
    auto param = with.find(amendment.param);
    const Json& operand = param != with.end() ? param->second : amendment.value;
    if (operand.is_null()) continue;  // a parameter that is not given has had its error
    Json& value = recipe[amendment.key];
    AmendedKey change{amendment.key, value, operand};
    if (amendment.op == Amendment::Op::kScale) {
      change.after = Scaled(value, operand.is_number() ? operand.get<double>() : 1.0);
    }
    value = change.after;
    amended.push_back(std::move(change));
  }
  return amended;
}

std::vector<std::string> RemarksOn(const Scenario& scenario) {
  std::vector<std::string> remarks;
  ForEachCheck(scenario, [&](const Check& check) {
    if (!check.min_margin || !check.margin_reason.empty()) return;
    const double least = check.min_margin->unit == formula::Unit::kStep ? 1 : 0.1;
    if (check.min_margin->value >= least) return;
    const std::string unit = formula::ToString(check.min_margin->unit);
    remarks.push_back(fmt::format(
        "{}:{}:{}: remark: check '{}' has a min_margin of {}{}: less than {} is hardly one; raise "
        "it, or say in 'reason' why it is enough",
        check.file, check.position.line, check.position.column, check.name, check.min_margin->value,
        unit.empty() ? "" : " " + unit, least));
  });
  return remarks;
}

bool ReadsRounding(const Scenario& scenario, const Point& point) {
  return std::any_of(scenario.agree.begin(), scenario.agree.end(), [&](const Check& check) {
    return AppliesTo(check.when, point) && check.formula.reads_rounding();
  });
}

bool AppliesTo(const std::vector<std::string>& when, const Point& point) {
  return when.empty() || std::any_of(when.begin(), when.end(), [&](const std::string& glob) {
           return GlobMatches(glob, point.name);
         });
}

}  // namespace trainwreck
