// trainwreck.yaml to TargetSpecs, strict and with positions, like scenarios.
#include "harness/targets/target_reader.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "harness/targets/globs.h"
#include "harness/targets/target_extras.h"
#include "harness/targets/target_hints.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

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

std::vector<std::string> NamesOf(const std::vector<ParamInfo>& infos) {
  std::vector<std::string> names;
  for (const ParamInfo& info : infos) names.push_back(info.name);
  return names;
}

}  // namespace

TargetReader::TargetReader(const std::string& file, const YamlNode& name, const YamlNode& node,
                           Errors& errors)
    : node_(node), errors_(errors), what_("target '" + name.text + "'") {
  spec_.file = file;
  spec_.name = name.text;
  spec_.folder = fs::path(file).parent_path().string();
  CheckName(name, "the name of a target", errors, /*may_have_dash=*/true);
  if (name.text == "reference") {
    errors.Add(name, "'reference' is the built-in trainer", "choose another name");
  }
}

TargetSpec TargetReader::Read() {
  Fields fields(node_, what_, errors_);
  if (!fields.is_map()) return std::move(spec_);
  if (const YamlNode* doc = fields.Take("doc")) {
    spec_.doc = ReadText(*doc, "'doc'", errors_).value_or("");
  }
  if (const YamlNode* level = fields.Take("level")) {
    spec_.level = ReadInt(*level, "'level'", errors_, 0, 2).value_or(0);
  }
  if (const YamlNode* folder = fields.Take("folder")) spec_.folder = ReadPath(*folder, "'folder'");
  ReadRecipeParts(fields);
  ReadCommands(fields);
  if (launcher_left_out_at_ != nullptr) RejectHiddenLauncher(*launcher_left_out_at_);
  ReadSignalParts(fields);
  ReadEvents(fields);
  ReadTargetExtras(fields, errors_, spec_.extras);
  if (const YamlNode* features = fields.Take("features")) {
    spec_.features = ReadTexts(*features, "'features'", errors_);
  }
  fields.RejectRest(/*allow_notes=*/true);
  return std::move(spec_);
}

std::string TargetReader::ReadPath(const YamlNode& node, const std::string& what) {
  const std::string text = ReadText(node, what, errors_).value_or(".");
  const fs::path path = (fs::path(spec_.file).parent_path() / text).lexically_normal();
  std::error_code error;
  if (!fs::exists(path, error)) {
    errors_.Add(node, what + " names '" + text + "', which is not there",
                "paths are taken from the folder of this file");
  }
  return path.string();
}

bool TargetReader::BelongsHere(const YamlNode* node, const std::string& key) {
  if (node == nullptr) return false;
  if (spec_.level < 2) return true;
  errors_.Add(*node, "a target of level 2 describes itself and takes no '" + key + "'",
              "remove it, or 'level: 2'");
  return false;
}

bool TargetReader::IsWholeNumber(const std::string& placeholder) const {
  for (const ParamInfo& key : spec_.recipe) {
    if (key.name == placeholder) return key.type == ValueType::kInt;
  }
  return placeholder == "run.seed" || placeholder == "run.rank" || placeholder == "run.ranks" ||
         placeholder == "run.until";
}

TemplateText TargetReader::ReadTemplate(const YamlNode& node, const std::string& what) {
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
    } else if (part.added != 0 && !IsWholeNumber(part.text)) {
      errors_.Add(node,
                  "a number can only be added to a whole number, and '" + part.text + "' is none",
                  "write {" + part.text + "}");
    } else if (part.text == "run.data" && spec_.data.empty()) {
      errors_.Add(node, "{run.data} stands for the target's 'data', which is missing",
                  "add 'data: FOLDER'");
    }
  }
  return parsed;
}

std::vector<Arguments> TargetReader::ReadArguments(const YamlNode& node, const std::string& what) {
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
      const auto key = std::find_if(spec_.recipe.begin(), spec_.recipe.end(),
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

void TargetReader::ReadCommands(Fields& fields) {
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
  const YamlNode* when_exists = parts.Take("when_exists");
  if (when_exists != nullptr) {
    spec_.resume_when = ReadTemplate(*when_exists, "'when_exists'");
    RejectWildcards(*when_exists);
  }
  // A program that resumes by itself needs no arguments, only the file that makes it do so.
  if (const YamlNode* node =
          when_exists != nullptr ? parts.Take("arguments") : parts.Require("arguments")) {
    spec_.resume = ReadArguments(*node, "'arguments'");
  }
  parts.RejectRest();
}

void TargetReader::RejectWildcards(const YamlNode& when_exists) {
  for (const TemplateText::Part& part : spec_.resume_when.parts()) {
    if (part.is_placeholder || !HasWildcards(part.text)) continue;
    errors_.Add(when_exists, "'when_exists' is the name of one file or folder: no '*', '?' or '['",
                "the newest of those that match is {newest:GLOB}");
    return;
  }
}

void TargetReader::RejectPlaceholders(const YamlNode& node) {
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
