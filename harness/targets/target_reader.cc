// trainwreck.yaml to TargetSpecs, strict and with positions, like scenarios.
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "harness/protocol/recipe_view.h"
#include "harness/targets/target_hints.h"
#include "harness/targets/target_spec.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"
#include "harness/yaml/fields.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxRanks = 4096;

std::vector<std::string> NamesOf(const std::vector<ParamInfo>& infos) {
  std::vector<std::string> names;
  for (const ParamInfo& info : infos) names.push_back(info.name);
  return names;
}

// Whether `text` is a word of a-z, 0-9 and '_', or several with dots between.
bool IsDottedName(const std::string& text) {
  bool begins = true;
  for (const char c : text) {
    const bool is_letter = c >= 'a' && c <= 'z';
    if (begins ? !is_letter : !(is_letter || (c >= '0' && c <= '9') || c == '_' || c == '.')) {
      return false;
    }
    begins = c == '.';
  }
  return !begins;
}

class TargetReader {
 public:
  TargetReader(const std::string& file, const YamlNode& name, const YamlNode& node, Errors& errors)
      : node_(node), errors_(errors), what_("target '" + name.text + "'") {
    spec_.file = file;
    spec_.name = name.text;
    spec_.folder = fs::path(file).parent_path().string();
    CheckName(name, "the name of a target", errors, /*may_have_dash=*/true);
    if (name.text == "reference") {
      errors.Add(name, "'reference' is the built-in trainer", "choose another name");
    }
  }

  TargetSpec Read() {
    Fields fields(node_, what_, errors_);
    if (!fields.is_map()) return std::move(spec_);
    if (const YamlNode* doc = fields.Take("doc")) {
      spec_.doc = ReadText(*doc, "'doc'", errors_).value_or("");
    }
    if (const YamlNode* level = fields.Take("level")) {
      spec_.level = ReadInt(*level, "'level'", errors_, 0, 2).value_or(0);
    }
    if (const YamlNode* folder = fields.Take("folder"))
      spec_.folder = ReadPath(*folder, "'folder'");
    ReadRecipeParts(fields);
    ReadCommands(fields);
    ReadSignalParts(fields);
    ReadTargetExtras(fields, errors_, spec_.extras);
    if (const YamlNode* features = fields.Take("features")) {
      spec_.features = ReadTexts(*features, "'features'", errors_);
    }
    fields.RejectRest(/*allow_notes=*/true);
    return std::move(spec_);
  }

 private:
  // Relative to the file.
  std::string ReadPath(const YamlNode& node, const std::string& what) {
    const std::string text = ReadText(node, what, errors_).value_or(".");
    const fs::path path = (fs::path(spec_.file).parent_path() / text).lexically_normal();
    std::error_code error;
    if (!fs::exists(path, error)) {
      errors_.Add(node, what + " names '" + text + "', which is not there",
                  "paths are taken from the folder of this file");
    }
    return path.string();
  }

  // A target of level 2 says these itself.
  bool BelongsHere(const YamlNode* node, const std::string& key) {
    if (node == nullptr) return false;
    if (spec_.level < 2) return true;
    errors_.Add(*node, "a target of level 2 describes itself and takes no '" + key + "'",
                "remove it, or 'level: 2'");
    return false;
  }

  void ReadRecipeParts(Fields& fields) {
    const YamlNode* recipe = spec_.level < 2 ? fields.Require("recipe") : fields.Take("recipe");
    if (BelongsHere(recipe, "recipe")) ReadRecipe(*recipe);
    const YamlNode* ranks = fields.Take("ranks");
    spec_.declares_ranks = ranks != nullptr;
    if (BelongsHere(ranks, "ranks")) ReadRanks(*ranks);
    if (const YamlNode* data = fields.Take("data")) spec_.data = ReadPath(*data, "'data'");
  }

  void ReadRecipe(const YamlNode& node) {
    if (!CheckFilledMap(node, "'recipe'", errors_)) return;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const YamlNode& key = node.keys[i];
      if (!IsDottedName(key.text)) {
        std::string lower = key.text;
        for (char& c : lower) c = c == '-' ? '_' : static_cast<char>(std::tolower(c));
        errors_.Add(key, "a recipe key must be words of a-z, 0-9 and '_', with dots between",
                    IsDottedName(lower) ? "write " + lower : "");
      } else if (key.text.rfind("run.", 0) == 0 || key.text.rfind("supervisor.", 0) == 0 ||
                 key.text == kRanksKey) {
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

  // `lr: 0.1` is short for `lr: {type: number, default: 0.1}`.
  std::optional<ParamInfo> ReadKey(const YamlNode& key, const YamlNode& node) {
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
        errors_.Add(
            *type, "no type is called '" + type->text + "'",
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

  // Only costs may be several: else the harness would not know which of two keys to change.
  void ReadRole(const YamlNode& node, ParamInfo& info) {
    const std::vector<std::string> known = KeyRoleNames();
    if (std::count(known.begin(), known.end(), node.text) == 0) {
      const std::string nearest = NearestName(node.text, known);
      errors_.Add(node, "no role is called '" + node.text + "'",
                  nearest.empty() ? "one of: " + Join(known) : "did you mean '" + nearest + "'?");
      return;
    }
    for (const ParamInfo& other : spec_.recipe) {
      if (other.role != node.text || node.text == ToString(KeyRole::kCost)) continue;
      errors_.Add(node, "'" + other.name + "' has the role '" + node.text + "' already");
    }
    info.role = node.text;
  }

  // A type that follows from a default must not follow from its quotes, or from a habit of
  // YAML 1.1.
  void RejectDisguise(const YamlNode& node) {
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

  static ValueType TypeOf(const YamlNode& node) {
    if (!node.is_plain) return ValueType::kString;
    if (node.text == "true" || node.text == "false") return ValueType::kBool;
    char* end = nullptr;
    std::strtoll(node.text.c_str(), &end, 10);
    if (*end == '\0') return ValueType::kInt;
    std::strtod(node.text.c_str(), &end);
    return *end == '\0' ? ValueType::kNumber : ValueType::kString;
  }

  void ReadRanks(const YamlNode& node) {
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
    if (const YamlNode* value = fields.Take("launcher")) {
      static const std::map<std::string, LauncherKind> kKinds = {
          {"own", LauncherKind::kOwn},
          {"torchrun", LauncherKind::kTorchrun},
          {"mpirun", LauncherKind::kMpirun},
          {"srun", LauncherKind::kSrun}};
      const auto found = kKinds.find(value->text);
      if (found == kKinds.end()) {
        errors_.Add(*value, "no launcher is called '" + value->text + "'",
                    SuggestName(value->text, {"own", "torchrun", "mpirun", "srun"}));
      } else {
        spec_.launcher = found->second;
      }
    }
    fields.RejectRest();
    if (spec_.level < 2) spec_.recipe.push_back(std::move(info));
  }

  TemplateText ReadTemplate(const YamlNode& node, const std::string& what) {
    const std::optional<std::string> text = ReadText(node, what, errors_);
    if (!text) return {};
    std::string wrong;
    TemplateText parsed = TemplateText::Parse(*text, wrong);
    if (!wrong.empty()) errors_.Add(node, wrong);
    std::vector<std::string> known = NamesOf(spec_.recipe);
    known.insert(known.end(), std::begin(kRunPlaceholders), std::end(kRunPlaceholders));
    if (const auto foreign = FindForeignPlaceholder(*text, known)) {
      errors_.Add(node, "no shell and no Python reads '" + foreign->text + "'",
                  "write {" + foreign->name + "}");
      return parsed;
    }
    for (const TemplateText::Part& part : parsed.parts()) {
      if (!part.is_placeholder || CheckNewest(part.text, what, node, errors_)) continue;
      if (std::count(known.begin(), known.end(), part.text) == 0) {
        YamlNode place = node;
        place.position.column += static_cast<int>(part.begin) + (node.is_plain ? 0 : 1);
        place.position.length = static_cast<int>(part.end - part.begin);
        errors_.Add(place, "no recipe key and nothing of the run is called '" + part.text + "'",
                    SuggestPlaceholder(part.text, known));
        is_sound_ = false;
      } else if (part.text == "run.data" && spec_.data.empty()) {
        errors_.Add(node, "{run.data} stands for the target's 'data', which is missing",
                    "add 'data: FOLDER'");
      }
    }
    return parsed;
  }

  std::vector<Arguments> ReadArguments(const YamlNode& node, const std::string& what) {
    std::vector<Arguments> list;
    if (node.IsScalar()) {
      errors_.Add(node, what + " must be a list of words, so that no shell has to split it",
                  "such as [python3, train.py, --lr, \"{lr}\"]");
      return list;
    }
    for (const YamlNode* item : ReadList(node, what, errors_)) {
      Arguments group;
      if (item->IsMap() && item->keys.size() == 1 &&
          item->items.front().kind == YamlNode::Kind::kNull) {
        const std::string& name = item->keys.front().text;
        errors_.Add(*item, "a placeholder has to stand in quotes, else it is a map of YAML",
                    "write \"{" + name + "}\"");
        continue;
      }
      if (!item->IsMap()) {
        group.words.push_back(ReadTemplate(*item, "an entry of " + what));
        list.push_back(std::move(group));
        continue;
      }
      Fields fields(*item, "an entry of " + what, errors_);
      if (const YamlNode* when = fields.Require("when")) {
        group.when = ReadText(*when, "'when'", errors_).value_or("");
        const auto key =
            std::find_if(spec_.recipe.begin(), spec_.recipe.end(),
                         [&](const ParamInfo& info) { return info.name == group.when; });
        if (key == spec_.recipe.end() || key->type != ValueType::kBool) {
          errors_.Add(*when, "'when' must name a recipe key of type bool",
                      SuggestName(group.when, NamesOf(spec_.recipe)));
        }
      }
      if (const YamlNode* words = fields.Require("arguments")) {
        for (const YamlNode* word : ReadList(*words, "'arguments'", errors_)) {
          group.words.push_back(ReadTemplate(*word, "an entry of 'arguments'"));
        }
      }
      fields.RejectRest();
      list.push_back(std::move(group));
    }
    return list;
  }

  void ReadCommands(Fields& fields) {
    if (const YamlNode* node = fields.Require("command")) {
      spec_.command_position = node->position;
      spec_.command = ReadArguments(*node, "'command'");
      if (spec_.level == 2) RejectPlaceholders(*node);
    }
    if (const YamlNode* node = fields.Take("environment");
        node != nullptr && CheckFilledMap(*node, "'environment'", errors_, "such as {A: \"1\"}")) {
      for (std::size_t i = 0; i < node->keys.size(); ++i) {
        spec_.environment[node->keys[i].text] =
            ReadTemplate(node->items[i], "'" + node->keys[i].text + "'");
      }
    }
    if (const YamlNode* node = fields.Take("build")) {
      if (node->IsScalar()) {
        errors_.Add(*node, "'build' must be a list of words", "such as [make, -j2]");
      } else {
        for (const YamlNode* item : ReadList(*node, "'build'", errors_)) {
          spec_.build.push_back(ReadText(*item, "an entry of 'build'", errors_).value_or(""));
        }
      }
    }
    const YamlNode* resume = fields.Take("resume");
    if (!BelongsHere(resume, "resume")) return;
    Fields parts(*resume, "'resume'", errors_,
                 "such as {arguments: [--load, \"{run.checkpoints}/last.pt\"]}");
    if (const YamlNode* node = parts.Require("arguments")) {
      spec_.resume = ReadArguments(*node, "'arguments'");
    }
    if (const YamlNode* node = parts.Take("when_exists")) {
      spec_.resume_when = ReadTemplate(*node, "'when_exists'");
    }
    parts.RejectRest();
  }

  void RejectPlaceholders(const YamlNode& node) {
    for (const Arguments& group : spec_.command) {
      for (const TemplateText& word : group.words) {
        const auto& parts = word.parts();
        if (is_sound_ && std::any_of(parts.begin(), parts.end(),
                                     [](const auto& part) { return part.is_placeholder; })) {
          errors_.Add(node, "a target of level 2 reads its recipe from the plan: no placeholders");
          return;
        }
      }
    }
  }

  void ReadSignalParts(Fields& fields) {
    const YamlNode* signals = spec_.level < 2 ? fields.Require("signals") : fields.Take("signals");
    if (BelongsHere(signals, "signals") &&
        CheckFilledMap(*signals, "'signals'", errors_, "such as {loss: {}}")) {
      for (std::size_t i = 0; i < signals->keys.size(); ++i) {
        ReadSignal(signals->keys[i], signals->items[i]);
      }
    }
    const YamlNode* sources = spec_.level == 0 ? fields.Require("sources") : fields.Take("sources");
    if (sources == nullptr) return;
    if (spec_.level > 0) {
      errors_.Add(*sources,
                  "a target of level " + std::to_string(spec_.level) +
                      " writes the trace itself and takes no 'sources'",
                  "remove it, or 'level: " + std::to_string(spec_.level) + "'");
      return;
    }
    for (const YamlNode* item : ReadList(*sources, "'sources'", errors_)) ReadSource(*item);
    const bool is_clear =
        std::none_of(spec_.sources.begin(), spec_.sources.end(),
                     [](const SourceSpec& source) { return source.names.empty(); });
    if (!is_clear || spec_.sources.empty()) return;  // what they would give is not known
    for (std::size_t i = 0; signals != nullptr && i < signals->keys.size(); ++i) {
      const std::string& name = signals->keys[i].text;
      const bool has_source =
          std::any_of(spec_.sources.begin(), spec_.sources.end(),
                      [&](const SourceSpec& source) { return source.names.contains(name); });
      if (has_source) continue;
      errors_.Add(signals->keys[i], "signal '" + name + "' comes from no source",
                  "let a pattern have a group (?P<" + name + ">\\S+), or add a source of its own");
    }
  }

  void ReadSignal(const YamlNode& key, const YamlNode& node) {
    SignalInfo info;
    info.name = key.text;
    spec_.signal_positions[key.text] = key.position;
    CheckName(key, "the name of a signal", errors_);
    if (key.text == "time" || key.text == "step") {
      errors_.Add(key, "the harness has '" + key.text + "' itself", "choose another name");
    }
    Fields fields(node, "signal '" + key.text + "'", errors_, "write " + key.text + ": {}");
    if (const YamlNode* value = fields.Take("unit")) {
      info.unit = ReadText(*value, "'unit'", errors_).value_or("");
    }
    if (const YamlNode* value = fields.Take("doc")) {
      info.doc = ReadText(*value, "'doc'", errors_).value_or("");
    }
    if (const YamlNode* value = fields.Take("scale")) {
      info.scale = value->text == "log" ? Scale::kLog : Scale::kLinear;
      if (value->text != "log" && value->text != "linear") {
        errors_.Add(*value, "'scale' must be linear or log (positive, spans decades)");
      }
    }
    for (auto [name, flag] : {std::pair{"exact", &info.exact}, std::pair{"sparse", &info.sparse},
                              std::pair{"optional", &info.optional}}) {
      if (const YamlNode* value = fields.Take(name)) {
        *flag = ReadBool(*value, std::string("'") + name + "'", errors_).value_or(false);
      }
    }
    ReadFloor(fields, key.text, errors_, spec_.extras);
    fields.RejectRest();
    spec_.signals.push_back(std::move(info));
  }

  std::string FirstSignal() const { return spec_.signals.empty() ? "loss" : spec_.signals[0].name; }

  bool IsSignal(const std::string& name) const {
    return std::any_of(spec_.signals.begin(), spec_.signals.end(),
                       [&](const SignalInfo& info) { return info.name == name; });
  }

  void RejectUnknownSignal(const YamlNode& at, const std::string& name, const std::string& what) {
    if (IsSignal(name)) return;
    std::vector<std::string> known;
    for (const SignalInfo& info : spec_.signals) known.push_back(info.name);
    errors_.Add(at, what + " '" + name + "' is none of the target's signals",
                SuggestName(name, known));
  }

  void ReadSource(const YamlNode& node) {
    struct Kind {
      const char* key;
      SourceKind kind;
      const char* names;
    };
    static constexpr Kind kKinds[] = {{"stdout", SourceKind::kStdout, nullptr},
                                      {"stderr", SourceKind::kStderr, nullptr},
                                      {"output", SourceKind::kOutput, nullptr},
                                      {"csv", SourceKind::kCsv, "columns"},
                                      {"json_lines", SourceKind::kJsonLines, "fields"},
                                      {"tensorboard", SourceKind::kTensorBoard, "tags"}};
    Fields fields(node, "a source", errors_);
    if (!fields.is_map()) return;
    SourceSpec source;
    const Kind* kind = nullptr;
    for (const Kind& candidate : kKinds) {
      const YamlNode* where = fields.Take(candidate.key);
      if (where == nullptr) continue;
      if (kind != nullptr) {
        errors_.Add(*where,
                    std::string("a source is one of '") + kind->key + "' and '" + candidate.key +
                        "', not both",
                    "write two entries of 'sources'");
      }
      kind = &candidate;
      source.kind = candidate.kind;
      source.position = where->position;
      if (candidate.names == nullptr) {
        ReadPattern(*where, source);
      } else {
        source.path = ReadTemplate(*where, std::string("'") + candidate.key + "'");
      }
    }
    if (kind == nullptr) {
      const std::vector<std::string> kinds = {"stdout", "stderr",     "output",
                                              "csv",    "json_lines", "tensorboard"};
      errors_.Add(node,
                  "a source must be one of stdout, stderr, output, csv, json_lines, tensorboard",
                  node.keys.empty() ? "" : SuggestName(node.keys.front().text, kinds));
    } else if (kind->names != nullptr) {
      if (const YamlNode* names = fields.Require(
              kind->names, std::string(kind->names) + ": {" + FirstSignal() + ": COLUMN}"))
        ReadNames(*names, kind->names, source);
      if (source.kind != SourceKind::kTensorBoard) {
        if (const YamlNode* step = fields.Take("step")) {
          source.step = ReadText(*step, "'step'", errors_).value_or("");
        }
      }
    }
    if (const YamlNode* first = fields.Take("first_step")) {
      source.first_step = ReadInt(*first, "'first_step'", errors_, 0, 1'000'000'000).value_or(0);
    }
    if (kind != nullptr) fields.RejectRest();
    spec_.sources.push_back(std::move(source));
  }

  void ReadPattern(const YamlNode& node, SourceSpec& source) {
    source.pattern = ReadText(node, "a pattern", errors_).value_or("");
    RE2::Options options;
    options.set_log_errors(false);
    const RE2 pattern(source.pattern, options);
    if (!pattern.ok()) {
      errors_.Add(node, "this is no regular expression: " + pattern.error(),
                  PatternHint(source.pattern));
      return;
    }
    if (const std::string twice = GroupGivenTwice(source.pattern); !twice.empty()) {
      errors_.Add(node, "two groups of the pattern are called '" + twice + "'",
                  "only one of them would be read: leave one without a name");
    }
    for (const auto& [name, index] : pattern.NamedCapturingGroups()) {
      if (name == "step") {
        source.step = name;
        continue;
      }
      RejectUnknownSignal(node, name, "the group");
      source.names[name] = name;
    }
    if (source.names.empty()) {
      errors_.Add(node, "the pattern has no named group that is a signal",
                  "such as 'loss: (?P<loss>\\S+)'");
    }
  }

  void ReadNames(const YamlNode& node, const std::string& what, SourceSpec& source) {
    if (!CheckFilledMap(node, "'" + what + "'", errors_)) return;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      RejectUnknownSignal(node.keys[i], node.keys[i].text, "'" + what + "':");
      source.names[node.keys[i].text] =
          ReadText(node.items[i], "'" + node.keys[i].text + "'", errors_).value_or("");
    }
  }

  const YamlNode& node_;
  Errors& errors_;
  const std::string what_;
  TargetSpec spec_;
  bool is_sound_ = true;
};

void ReadFile(const YamlNode& root, const std::string& path, Errors& errors, TargetFile& file) {
  Fields fields(root, "the file of targets", errors);
  if (!fields.is_map()) return;
  if (const YamlNode* node = fields.Require("apiVersion", "apiVersion: trainwreck/v1");
      node != nullptr && node->text != kApiVersion) {
    errors.Add(*node, std::string("'apiVersion' must be ") + kApiVersion);
  }
  if (const YamlNode* node = fields.Require("kind", "kind: Targets");
      node != nullptr && node->text != "Targets") {
    errors.Add(*node, "'kind' must be Targets");
  }
  const YamlNode* chosen = fields.Take("default");
  const YamlNode* targets = fields.Require("targets", "targets: {NAME: {command: ...}}");
  std::vector<std::string> names;
  if (targets != nullptr &&
      CheckFilledMap(*targets, "'targets'", errors, "such as targets: {NAME: {command: ...}}")) {
    for (std::size_t i = 0; i < targets->keys.size(); ++i) {
      names.push_back(targets->keys[i].text);
      file.targets.push_back(
          TargetReader(path, targets->keys[i], targets->items[i], errors).Read());
    }
  }
  if (chosen != nullptr) {
    file.default_target = ReadText(*chosen, "'default'", errors).value_or("");
    if (std::count(names.begin(), names.end(), file.default_target) == 0) {
      errors.Add(*chosen, "no target is called '" + file.default_target + "'",
                 SuggestName(file.default_target, names));
    }
  }
  fields.RejectRest(/*allow_notes=*/true);
}

}  // namespace

TargetFile LoadTargetFile(const std::string& path) {
  TargetFile file;
  std::string why;
  const std::optional<std::string> text = ReadSmallFile(path, why);
  if (!text) {
    file.errors.push_back({path, {}, "cannot read the file of targets: " + why, "", ""});
    return file;
  }
  Errors errors;
  std::error_code error;
  const fs::path near = fs::path(path).lexically_proximate(fs::current_path(error));
  const bool is_near = !near.empty() && *near.begin() != "..";
  const int source = errors.AddSource(is_near ? near.string() : path, *text);
  if (const std::optional<YamlNode> root = ParseYaml(*text, source, errors)) {
    const std::string absolute = fs::absolute(path).lexically_normal().string();
    ReadFile(*root, absolute, errors, file);
  }
  file.errors = errors.Sorted();
  return file;
}

}  // namespace trainwreck
