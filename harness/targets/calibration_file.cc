#include "harness/targets/calibration_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>

#include "harness/protocol/digest.h"
#include "harness/text/words.h"
#include "harness/yaml/fields.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const TemplateText& text) {
  std::string all;
  for (const TemplateText::Part& part : text.parts()) {
    const std::string added = part.added == 0 ? "" : fmt::format("{:+}", part.added);
    all += part.is_placeholder ? "{" + part.text + added + "}" : part.text;
  }
  return all;
}

MeasuredStrength ReadMeasured(const YamlNode& node, Errors& errors) {
  MeasuredStrength measured;
  Fields fields(node, "a calibrated strength", errors);
  if (const YamlNode* value = fields.Require("strength")) {
    measured.strength = ReadNumber(*value, "'strength'", errors).value_or(0);
  }
  if (const YamlNode* value = fields.Require("passed")) {
    const std::vector<const YamlNode*> ends = ReadList(*value, "'passed'", errors);
    if (ends.size() == 2) {
      measured.passed = {ReadNumber(*ends[0], "'passed'", errors).value_or(0),
                         ReadNumber(*ends[1], "'passed'", errors).value_or(0)};
    } else {
      errors.Add(*value, "'passed' must have two numbers");
    }
  }
  fields.RejectRest();
  return measured;
}

MeasuredTarget ReadTarget(const YamlNode& node, Errors& errors) {
  MeasuredTarget target;
  Fields fields(node, "a calibrated target", errors);
  if (const YamlNode* value = fields.Require("command")) {
    target.command = ReadText(*value, "'command'", errors).value_or("");
  }
  if (const YamlNode* recipe = fields.Require("recipe")) {
    for (std::size_t i = 0; i < recipe->keys.size(); ++i) {
      target.recipe[recipe->keys[i].text] = recipe->items[i].text;
    }
  }
  if (const YamlNode* strengths = fields.Require("strengths")) {
    for (std::size_t i = 0; i < strengths->keys.size(); ++i) {
      target.strengths[strengths->keys[i].text] = ReadMeasured(strengths->items[i], errors);
    }
  }
  fields.RejectRest();
  return target;
}

void ReadFile(const YamlNode& root, Errors& errors, CalibrationFile& file) {
  Fields fields(root, "the calibration", errors);
  if (!fields.is_map()) return;
  for (const auto& [key, wanted] :
       {std::pair{"apiVersion", kApiVersion}, {"kind", "Calibration"}}) {
    const YamlNode* node = fields.Require(key);
    if (node != nullptr && node->text != wanted) {
      errors.Add(*node, std::string("'") + key + "' must be " + wanted);
    }
  }
  const YamlNode* targets = fields.Require("targets");
  if (targets != nullptr && CheckFilledMap(*targets, "'targets'", errors)) {
    for (std::size_t i = 0; i < targets->keys.size(); ++i) {
      file.targets[targets->keys[i].text] = ReadTarget(targets->items[i], errors);
    }
  }
  fields.RejectRest();
}

// "lr was 0.003"; empty: the key is what it was.
std::string ChangeOf(const std::string& key, const std::map<std::string, std::string>& then,
                     const std::map<std::string, std::string>& now) {
  const auto before = then.find(key), after = now.find(key);
  if (before == then.end()) return "there was no " + key;
  if (after != now.end() && after->second == before->second) return "";
  return key + " was " + before->second;
}

std::string RemarkOn(const MeasuredTarget& then, const MeasuredTarget& now) {
  std::vector<std::string> changes;
  if (then.command != now.command) changes.push_back("the command was another one");
  std::set<std::string> keys;
  for (const auto& [key, value] : then.recipe) keys.insert(key);
  for (const auto& [key, value] : now.recipe) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string change = ChangeOf(key, then.recipe, now.recipe);
    if (!change.empty()) changes.push_back(change);
  }
  return changes.empty() ? "" : "stale, when it was measured " + Join(changes);
}

}  // namespace

std::string CalibrationPath(const TargetSpec& spec) {
  return (fs::path(spec.file).parent_path() / "trainwreck.calibration.yaml").string();
}

CalibrationFile LoadCalibrationFile(const std::string& path) {
  CalibrationFile file;
  std::error_code error;
  if (!fs::exists(path, error)) return file;
  std::string why;
  const std::optional<std::string> text = ReadSmallFile(path, why);
  if (!text) {
    file.errors.push_back({path, {}, "cannot read the calibration: " + why, "", ""});
    return file;
  }
  Errors errors;
  const int source = errors.AddSource(path, *text);
  if (const auto root = ParseYaml(*text, source, errors)) ReadFile(*root, errors, file);
  file.errors = errors.Sorted();
  return file;
}

std::string CalibrationText(const CalibrationFile& file) {
  std::string text =
      "# Written by `trainwreck calibrate`. Keep it beside trainwreck.yaml, under version "
      "control.\n";
  text += std::string("apiVersion: ") + kApiVersion + "\nkind: Calibration\ntargets:\n";
  for (const auto& [name, target] : file.targets) {
    text += "  " + name + ":\n    command: " + Json(target.command).dump() + "\n    recipe:\n";
    for (const auto& [key, value] : target.recipe) {
      text += "      " + key + ": " + Json(value).dump() + "\n";
    }
    text += "    strengths:\n";
    for (const auto& [scenario, measured] : target.strengths) {
      text += fmt::format("      {}: {{strength: {}, passed: [{}, {}]}}\n", scenario,
                          measured.strength, measured.passed.first, measured.passed.second);
    }
  }
  return text;
}

MeasuredTarget AsMeasured(const TargetSpec& spec) {
  MeasuredTarget target;
  std::string words;
  for (const std::vector<Arguments>* list : {&spec.command, &spec.resume}) {
    for (const Arguments& group : *list) {
      words += group.when + ":";
      for (const TemplateText& word : group.words) words += TextOf(word) + "\n";
    }
  }
  target.command = DigestText(words);
  for (const ParamInfo& key : spec.recipe) {
    target.recipe[key.name] = ArgumentText(key.default_value);
  }
  return target;
}

Calibration CalibrationOf(const CalibrationFile& file, const TargetSpec& spec) {
  Calibration calibration;
  const auto found = file.targets.find(spec.name);
  if (found == file.targets.end()) return calibration;
  for (const auto& [scenario, measured] : found->second.strengths) {
    calibration.strengths[scenario] = measured.strength;
  }
  calibration.remark = RemarkOn(found->second, AsMeasured(spec));
  return calibration;
}

}  // namespace trainwreck
