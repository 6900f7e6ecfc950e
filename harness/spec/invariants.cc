#include "harness/spec/invariants.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "harness/formula/arms.h"
#include "harness/spec/parts_reader.h"
#include "harness/text/words.h"
#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

Json PlainValue(const YamlNode& node) {
  if (!node.is_plain) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  double number = 0;
  const char* end = node.text.data() + node.text.size();
  const auto parsed = std::from_chars(node.text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end) return number;
  return node.text;
}

// "> 0"
bool ReadBound(const std::string& text, KeyCondition& condition) {
  const std::size_t length = text.find_first_not_of("<>=");
  if (length == 0 || length == std::string::npos) return false;
  const std::string op = text.substr(0, length);
  if (op != "<" && op != "<=" && op != ">" && op != ">=") return false;
  const std::optional<formula::Amount> amount = formula::ParseAmount(text.substr(length));
  if (!amount || amount->unit != formula::Unit::kPlain) return false;
  condition.op = op;
  condition.bound = amount->value;
  return true;
}

// Nested keys are joined by dots, as in recipes.
void ReadGiven(const YamlNode& map, const std::string& prefix, Errors& errors,
               std::vector<KeyCondition>& given) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const YamlNode& value = map.items[i];
    KeyCondition condition;
    condition.key = prefix + map.keys[i].text;
    if (value.IsMap()) {
      ReadGiven(value, condition.key + ".", errors, given);
      continue;
    }
    if (value.IsScalar() && ReadBound(value.text, condition)) {
      given.push_back(std::move(condition));
      continue;
    }
    for (const YamlNode* item : ReadList(value, "'" + condition.key + "'", errors)) {
      if (!item->IsScalar() || item->text.find_first_of("<>") == 0) {
        errors.Add(*item, "a value, or a bound of one number, must stand here",
                   "such as adamw, [sgd, adamw], or \"> 0\"");
        continue;
      }
      condition.values.push_back(PlainValue(*item));
    }
    given.push_back(std::move(condition));
  }
}

std::optional<double> NumberOf(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_number()) return value.get<double>();
  return std::nullopt;
}

// The value in the recipe, or else the target's default.
Json ValueOf(const std::string& key, const Recipe& recipe, const TargetDescription& target) {
  if (auto found = recipe.find(key); found != recipe.end()) return found->second;
  const ParamInfo* info = target.FindRecipeKey(key);
  return info == nullptr ? Json() : info->default_value;
}

bool Meets(const KeyCondition& condition, const Json& value) {
  const std::optional<double> number = NumberOf(value);
  if (condition.op.empty()) {
    return std::any_of(condition.values.begin(), condition.values.end(), [&](const Json& wanted) {
      return wanted.is_number() && number ? wanted.get<double>() == *number : wanted == value;
    });
  }
  if (!number) return false;
  if (condition.op == "<") return *number < condition.bound;
  if (condition.op == "<=") return *number <= condition.bound;
  if (condition.op == ">") return *number > condition.bound;
  return *number >= condition.bound;
}

// "signal:loss"; empty: the target has all that the formula mentions.
std::string LackingSignal(const formula::Formula& formula, const TargetDescription& target) {
  for (const std::string& signal : formula.signals()) {
    const std::string name = signal.substr(0, signal.find('{'));
    if (target.FindSignal(name) == nullptr) return "signal:" + name;
  }
  for (const std::string& event : formula.events()) {
    // A signal's name alone is a mistake, and no event of other targets.
    const bool is_known = target.FindEvent(event) != nullptr || target.FindSignal(event) != nullptr;
    if (!is_known) return "event:" + event;
  }
  return "";
}

// What is wrong with a formula whatever the numbers of the recipe are.
void CheckFormula(const Invariant& invariant, const YamlNode& node, const TargetDescription& target,
                  Errors& errors) {
  std::set<std::string> arms = invariant.formula.arms();
  arms.erase(formula::kOtherSeed);
  if (!arms.empty()) {
    errors.Add(node,
               "an invariant is about one run, and this one reads the arm '" + *arms.begin() + "'",
               "the same arm's run with the next seed is 'other_seed'");
    return;
  }
  if (!LackingSignal(invariant.formula, target).empty()) return;
  std::map<std::string, double> values;
  for (const std::string& key : invariant.formula.recipe_keys()) {
    const ParamInfo* info = target.FindRecipeKey(key);
    if (info == nullptr) return;
    if (info->type == ValueType::kString) {
      errors.Add(node, "recipe(" + key + ") is no number", "say it in 'given'");
      return;
    }
    values[key] = NumberOf(info->default_value).value_or(1);
  }
  formula::Vocabulary vocabulary;
  vocabulary.target = &target;
  vocabulary.world_size = 2;
  vocabulary.arms = {formula::kOtherSeed};
  const formula::Formula formula = invariant.formula.WithRecipe(values);
  for (const formula::FormulaError& error : formula.Check(vocabulary)) {
    errors.Add(node.source, PlaceInFormula(node, error.begin, error.end, errors), error.message,
               error.hint);
  }
}

std::optional<Invariant> ReadInvariant(const YamlNode& key, const YamlNode& node,
                                       const TargetDescription& target, Errors& errors) {
  const std::size_t errors_before = errors.size();
  CheckName(key, "the name of an invariant", errors);
  Fields fields(node, "invariant '" + key.text + "'", errors, "such as {title: ..., assert: ...}");
  const YamlNode* title = fields.Require("title", "title: WHAT HOLDS");
  const YamlNode* part = fields.Require("part", "part: optimizer");
  const YamlNode* assert_node = fields.Require("assert", "assert: FORMULA");
  std::vector<KeyCondition> given;
  if (const YamlNode* map = fields.Take("given")) {
    if (CheckFilledMap(*map, "'given'", errors, "such as {optimizer.clip_norm: \"> 0\"}")) {
      ReadGiven(*map, "", errors, given);
    }
  }
  std::vector<std::string> features;
  if (const YamlNode* list = fields.Take("features")) {
    features = ReadTexts(*list, "'features'", errors);
  }
  fields.RejectRest();
  if (title == nullptr || part == nullptr || assert_node == nullptr) return std::nullopt;
  const std::string text = ReadText(*assert_node, "'assert'", errors).value_or("");
  formula::Formula::ParseResult parsed = formula::Formula::Parse(text);
  for (const formula::FormulaError& error : parsed.errors) {
    errors.Add(assert_node->source, PlaceInFormula(*assert_node, error.begin, error.end, errors),
               error.message, error.hint);
  }
  if (!parsed.formula) return std::nullopt;
  Invariant invariant{key.text,
                      ReadText(*title, "'title'", errors).value_or(""),
                      ReadText(*part, "'part'", errors).value_or(""),
                      std::move(given),
                      std::move(features),
                      parsed.formula->WithRoles(target),
                      key.position,
                      errors.SourceName(key.source)};
  CheckFormula(invariant, *assert_node, target, errors);
  if (errors.size() > errors_before) return std::nullopt;
  return invariant;
}

}  // namespace

bool IsInvariantsFile(const std::string& path) {
  return fs::path(path).filename() == kInvariantsFile;
}

InvariantsFile ParseInvariants(const std::string& text, const std::string& file,
                               const TargetDescription& target) {
  Errors errors;
  const int source = errors.AddSource(file, text);
  auto invariants = std::make_shared<std::vector<Invariant>>();
  if (const std::optional<YamlNode> root = ParseYaml(text, source, errors)) {
    Fields fields(*root, "the file", errors);
    const std::pair<const char*, const char*> kHead[] = {{"apiVersion", kApiVersion},
                                                         {"kind", "Invariants"}};
    for (const auto& [name, wanted] : kHead) {
      const YamlNode* node = fields.Require(name, std::string(name) + ": " + wanted);
      if (node != nullptr && node->text != wanted) {
        errors.Add(*node, std::string("'") + name + "' must be " + wanted);
      }
    }
    const YamlNode* all = fields.Require("invariants", "invariants: {NAME: {assert: FORMULA}}");
    if (all != nullptr && CheckFilledMap(*all, "'invariants'", errors)) {
      for (std::size_t i = 0; i < all->keys.size(); ++i) {
        std::optional<Invariant> one = ReadInvariant(all->keys[i], all->items[i], target, errors);
        if (one) invariants->push_back(std::move(*one));
      }
    }
    fields.RejectRest(/*allow_notes=*/true);
  }
  return {invariants, errors.Sorted()};
}

InvariantsFile LoadInvariants(const std::string& scenarios_root, const TargetDescription& target) {
  const std::string file = (fs::path(scenarios_root) / kInvariantsFile).lexically_normal().string();
  std::error_code error;
  if (!fs::exists(file, error)) return {std::make_shared<std::vector<Invariant>>(), {}};
  std::string why;
  const std::optional<std::string> text = ReadSmallFile(file, why);
  if (text) return ParseInvariants(*text, file, target);
  Errors errors;
  errors.Add(errors.AddSource(file, ""), {}, "cannot read the invariants: " + why);
  return {std::make_shared<std::vector<Invariant>>(), errors.Sorted()};
}

std::string LackingFor(const Invariant& invariant, const TargetDescription& target) {
  std::string lacking = LackingSignal(invariant.formula, target);
  if (!lacking.empty()) return lacking;
  for (const std::string& feature : invariant.features) {
    if (!target.HasFeature(feature)) return "feature:" + feature;
  }
  std::set<std::string> keys = invariant.formula.recipe_keys();
  for (const KeyCondition& condition : invariant.given) keys.insert(condition.key);
  for (const std::string& key : keys) {
    if (target.FindRecipeKey(key) == nullptr) return "recipe:" + key;
  }
  return "";
}

std::optional<formula::Formula> AskedOf(const Invariant& invariant, const Recipe& recipe,
                                        const Recipe& changing, const TargetDescription& target) {
  if (!LackingFor(invariant, target).empty()) return std::nullopt;
  for (const KeyCondition& condition : invariant.given) {
    if (changing.contains(condition.key)) return std::nullopt;
    if (!Meets(condition, ValueOf(condition.key, recipe, target))) return std::nullopt;
  }
  std::map<std::string, double> values;
  for (const std::string& key : invariant.formula.recipe_keys()) {
    const std::optional<double> value = NumberOf(ValueOf(key, recipe, target));
    if (!value || changing.contains(key)) return std::nullopt;
    values[key] = *value;
  }
  return invariant.formula.WithRecipe(values);
}

}  // namespace trainwreck
