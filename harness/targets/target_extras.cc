#include "harness/targets/target_extras.h"

#include "harness/protocol/json.h"
#include "harness/targets/globs.h"

namespace trainwreck {
namespace {

constexpr double kDay = 86400;

std::optional<double> ReadSeconds(const YamlNode& node, const std::string& what, Errors& errors) {
  const std::optional<double> seconds = ReadNumber(node, what, errors);
  if (!seconds || (*seconds > 0 && *seconds <= kDay)) return seconds;
  errors.Add(node, what + " must be more than 0 and at most a day (86400)");
  return std::nullopt;
}

void ReadBudget(const YamlNode& node, Errors& errors, TargetExtras& extras) {
  if (!CheckFilledMap(node, "'budget'", errors)) return;
  Fields fields(node, "'budget'", errors);
  if (const YamlNode* value = fields.Take("seconds")) {
    extras.seconds = ReadSeconds(*value, "'seconds'", errors);
  }
  if (const YamlNode* value = fields.Take("stall_seconds")) {
    extras.stall_seconds = ReadSeconds(*value, "'stall_seconds'", errors);
  }
  if (const YamlNode* value = fields.Take("disk")) {
    extras.disk_bytes = ReadBytes(*value, "'disk'", errors);
  }
  fields.RejectRest();
}

void ReadFingerprint(const YamlNode& node, Errors& errors, TargetExtras& extras) {
  if (!node.IsMap()) {
    errors.Add(node, "'fingerprint' must be a map of 'packages' and 'command'",
               "such as {packages: [torch, numpy]}");
    return;
  }
  if (!CheckFilledMap(node, "'fingerprint'", errors)) return;
  Fields fields(node, "'fingerprint'", errors);
  if (const YamlNode* packages = fields.Take("packages")) {
    extras.packages = ReadTexts(*packages, "'packages'", errors);
  }
  if (const YamlNode* command = fields.Take("command")) {
    if (command->IsScalar()) {
      errors.Add(*command, "'command' must be a list of words", "such as [nvcc, --version]");
    } else {
      extras.fingerprint_command = ReadTexts(*command, "'command'", errors);
    }
  }
  fields.RejectRest();
}

}  // namespace

void ReadTargetExtras(Fields& fields, Errors& errors, TargetExtras& extras) {
  if (const YamlNode* node = fields.Take("start_seconds")) {
    extras.start_seconds = ReadSeconds(*node, "'start_seconds'", errors);
  }
  if (const YamlNode* node = fields.Take("budget")) ReadBudget(*node, errors, extras);
  if (const YamlNode* node = fields.Take("digest")) {
    extras.digest = ReadTexts(*node, "'digest'", errors);
  }
  if (const YamlNode* node = fields.Take("fingerprint")) ReadFingerprint(*node, errors, extras);
}

void ReadFloor(Fields& fields, const std::string& signal, Errors& errors, TargetExtras& extras) {
  const YamlNode* node = fields.Take("floor");
  if (node == nullptr) return;
  if (const auto floor = ReadNumber(*node, "'floor'", errors)) extras.floors[signal] = *floor;
}

bool CheckNewest(const std::string& placeholder, const std::string& what, const YamlNode& node,
                 Errors& errors) {
  if (placeholder.rfind(kNewest, 0) != 0) return false;
  if (placeholder.size() == std::string(kNewest).size()) {
    errors.Add(node, "'{newest:}' needs a pattern", "such as {newest:checkpoint-*}");
  }
  for (const char* place : {"'command'", "'arguments'", "'when_exists'"}) {
    if (what.find(place) != std::string::npos) return true;
  }
  errors.Add(node, "{newest:...} can stand only in 'command', 'resume' and their arguments");
  return true;
}

std::string FloorFeature(const std::string& signal, double floor) {
  return "floor:" + signal + "=" + Json(floor).dump();
}

}  // namespace trainwreck
