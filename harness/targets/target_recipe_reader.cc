// The recipe of a target of trainwreck.yaml: its keys, their types, its ranks.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <utility>

#include "harness/protocol/recipe_view.h"
#include "harness/targets/target_hints.h"
#include "harness/targets/target_reader.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr int kMaxRanks = 4096;

ValueType TypeOf(const YamlNode& node) {
  if (!node.is_plain) return ValueType::kString;
  if (node.text == "true" || node.text == "false") return ValueType::kBool;
  char* end = nullptr;
  std::strtoll(node.text.c_str(), &end, 10);
  if (*end == '\0') return ValueType::kInt;
  std::strtod(node.text.c_str(), &end);
  return *end == '\0' ? ValueType::kNumber : ValueType::kString;
}

}  // namespace

bool IsKeyName(const std::string& name) {
  bool begins = true;
  for (const char c : name) {
    const bool is_letter = c >= 'a' && c <= 'z';
    if (begins ? !is_letter : !(is_letter || (c >= '0' && c <= '9') || c == '_' || c == '.')) {
      return false;
    }
    begins = c == '.';
  }
  return !begins;
}

bool IsHarnessKey(const std::string& name) {
  return name.starts_with("run.") || name.starts_with("supervisor.") || name == kRanksKey;
}

void TargetReader::ReadRecipeParts(Fields& fields) {
  const YamlNode* recipe = spec_.level < 2 ? fields.Require("recipe") : fields.Take("recipe");
  if (BelongsHere(recipe, "recipe")) ReadRecipe(*recipe);
  const YamlNode* ranks = fields.Take("ranks");
  spec_.declares_ranks = ranks != nullptr;
  if (BelongsHere(ranks, "ranks")) ReadRanks(*ranks);
  if (const YamlNode* data = fields.Take("data")) spec_.data = ReadPath(*data, "'data'");
}

void TargetReader::ReadRecipe(const YamlNode& node) {
  if (!CheckFilledMap(node, "'recipe'", errors_)) return;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& key = node.keys[i];
    if (!IsKeyName(key.text)) {
      std::string lower = key.text;
      for (char& c : lower) c = c == '-' ? '_' : static_cast<char>(std::tolower(c));
      errors_.Add(key, "a recipe key must be words of a-z, 0-9 and '_', with dots between",
                  IsKeyName(lower) ? "write " + lower : "");
    } else if (IsHarnessKey(key.text)) {
      errors_.Add(key, "the harness has '" + key.text + "' itself",
                  key.text == kRanksKey ? "say 'ranks'" : "choose another name");
    }
    std::optional<ParamInfo> info = ReadKey(key, node.items[i]);
    if (info) spec_.recipe.push_back(std::move(*info));
  }
  const YamlNode* steps = node.FindKey(kStepsKey);
  if (steps == nullptr) {
    errors_.Add(node, "'recipe' lacks 'steps': how long a run is, in steps of its signals",
                "such as steps: {type: int, default: 100, min: 1}");
  } else if (!spec_.recipe.empty()) {
    for (const ParamInfo& info : spec_.recipe) {
      if (info.name == kStepsKey && info.type != ValueType::kInt) {
        errors_.Add(*steps, "'steps' must be a whole number",
                    "such as {default: 100, min: 1}, without quotes");
      }
    }
  }
}

std::optional<ParamInfo> TargetReader::ReadKey(const YamlNode& key, const YamlNode& node) {
  ParamInfo info;
  info.name = key.text;
  if (node.IsScalar()) {
    info.type = TypeOf(node);
    RejectDisguise(node);
    info.default_value = ReadValue(node, info, errors_).value_or(Json());
    return info;
  }
  Fields fields(node, "recipe key '" + key.text + "'", errors_);
  if (!fields.is_map()) return std::nullopt;
  const YamlNode* default_value = fields.Take("default");
  if (const YamlNode* type = fields.Take("type")) {
    static const std::map<std::string, ValueType> kTypes = {
        {"bool", ValueType::kBool},     {"int", ValueType::kInt},
        {"number", ValueType::kNumber}, {"string", ValueType::kString},
        {"ints", ValueType::kIntList},  {"strings", ValueType::kStringList}};
    const auto found = kTypes.find(type->text);
    if (found == kTypes.end()) {
      errors_.Add(*type, "no type is called '" + type->text + "'",
                  SuggestType(type->text, {"bool", "int", "number", "string", "ints", "strings"}));
    } else {
      info.type = found->second;
    }
  } else if (default_value != nullptr && default_value->IsScalar()) {
    info.type = TypeOf(*default_value);
    RejectDisguise(*default_value);
  } else {
    errors_.Add(key, "recipe key '" + key.text + "' needs a 'type' or a 'default'");
  }
  if (const YamlNode* value = fields.Take("min")) info.min = ReadNumber(*value, "'min'", errors_);
  if (const YamlNode* value = fields.Take("max")) info.max = ReadNumber(*value, "'max'", errors_);
  if (const YamlNode* value = fields.Take("choices")) {
    info.choices = ReadTexts(*value, "'choices'", errors_);
  }
  if (const YamlNode* value = fields.Take("role")) ReadRole(*value, info);
  for (auto [name, text] : {std::pair{"unit", &info.unit}, std::pair{"doc", &info.doc}}) {
    if (const YamlNode* value = fields.Take(name)) {
      *text = ReadText(*value, std::string("'") + name + "'", errors_).value_or("");
    }
  }
  if (default_value != nullptr) {
    info.default_value = ReadValue(*default_value, info, errors_).value_or(Json());
  }
  if (info.min && info.max && *info.min > *info.max) {
    errors_.Add(key, "'min' of '" + key.text + "' is more than its 'max'", "change places");
  }
  fields.RejectRest();
  return info;
}

void TargetReader::ReadRole(const YamlNode& node, ParamInfo& info) {
  const std::vector<std::string> known = KeyRoleNames();
  if (std::count(known.begin(), known.end(), node.text) == 0) {
    const std::string nearest = NearestName(node.text, known);
    errors_.Add(node, "no role is called '" + node.text + "'",
                nearest.empty() ? "one of: " + Join(known) : "did you mean '" + nearest + "'?");
    return;
  }
  const bool is_of_several =
      node.text == ToString(KeyRole::kCost) || node.text == ToString(KeyRole::kRegularisation);
  for (const ParamInfo& other : spec_.recipe) {
    if (other.role != node.text || is_of_several) continue;
    errors_.Add(node, "'" + other.name + "' has the role '" + node.text + "' already");
  }
  info.role = node.text;
}

void TargetReader::RejectDisguise(const YamlNode& node) {
  YamlNode plain = node;
  plain.is_plain = true;
  const ValueType type = TypeOf(plain);
  if (!node.is_plain && (type == ValueType::kInt || type == ValueType::kNumber)) {
    errors_.Add(node, "a number in quotes is text, which no fault can scale",
                "drop the quotes; for text say {type: string, default: \"" + node.text + "\"}");
  }
  const std::string& text = node.text;
  if (node.is_plain && (text == "yes" || text == "on" || text == "no" || text == "off")) {
    errors_.Add(node, "'" + text + "' is text here",
                std::string("write ") + (text == "yes" || text == "on" ? "true" : "false") +
                    "; for text say {type: string, default: " + text + "}");
  }
}

// The harness would start the launcher once for each rank.
void TargetReader::RejectHiddenLauncher(const YamlNode& node) {
  const std::map<std::string, std::string> launchers = LauncherVariables();
  for (const Arguments& group : spec_.command) {
    for (const TemplateText& word : group.words) {
      if (word.parts().size() != 1 || word.parts().front().is_placeholder) continue;
      const std::string& text = word.parts().front().text;
      const std::string name = text.substr(text.rfind('/') + 1);
      if (!launchers.contains(name)) continue;
      errors_.Add(
          node, "the ranks are started by '" + name + "', as 'command' has it",
          "say launcher: " + name + "; or launcher: own, if the harness starts each of them");
      return;
    }
  }
}

void TargetReader::ReadRanks(const YamlNode& node) {
  ParamInfo info;
  info.name = kRanksKey;
  info.type = ValueType::kInt;
  info.min = 1;
  info.doc = "Processes of one run.";
  info.default_value = 1;
  Fields fields(node, "'ranks'", errors_,
                "such as {max: " + (node.IsScalar() ? node.text : "2") + "}");
  if (const YamlNode* value = fields.Take("default")) {
    info.default_value = ReadInt(*value, "'default'", errors_, 1, kMaxRanks).value_or(1);
  }
  if (const YamlNode* value = fields.Take("max")) {
    info.max = ReadInt(*value, "'max'", errors_, 1, kMaxRanks).value_or(kMaxRanks);
  }
  const YamlNode* const launcher = fields.Take("launcher");
  if (launcher == nullptr) {
    launcher_left_out_at_ = &node;
  } else {
    static const std::map<std::string, LauncherKind> kKinds = {
        {"own", LauncherKind::kOwn},
        {"torchrun", LauncherKind::kTorchrun},
        {"mpirun", LauncherKind::kMpirun},
        {"srun", LauncherKind::kSrun}};
    const auto found = kKinds.find(launcher->text);
    if (found == kKinds.end()) {
      errors_.Add(*launcher, "no launcher is called '" + launcher->text + "'",
                  SuggestName(launcher->text, {"own", "torchrun", "mpirun", "srun"}));
    } else {
      spec_.launcher = found->second;
    }
  }
  fields.RejectRest();
  if (spec_.level < 2) spec_.recipe.push_back(std::move(info));
}

}  // namespace trainwreck
