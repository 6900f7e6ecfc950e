// Reads typed values out of a YAML tree; whatever does not fit becomes an error with its place.
//
//   Fields fields(node, "fault 'hot_lr'", errors);
//   if (const YamlNode* fault = fields.Require("fault")) name = ReadText(*fault, "fault", errors);
//   fields.RejectRest();  // unknown keys, with the nearest of those that were asked for
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

// The required `apiVersion` of a scenario, a fault, a target, invariants and expected keys.
inline constexpr char kApiVersion[] = "trainwreck/v1";

// The keys of one map. A node that is no map is an error; then nothing is found in it.
class Fields {
 public:
  // `example` is the hint where no map stands: "such as {max: 2}".
  Fields(const YamlNode& node, std::string owner, Errors& errors, const std::string& example = "");

  const YamlNode* Take(const std::string& key);  // nullptr when absent
  // Absent is an error, told by RejectRest; `example` says what to add: "columns: {loss: COLUMN}".
  const YamlNode* Require(const std::string& key, const std::string& example = "");
  void RejectRest(bool allow_notes = false);  // notes: keys that begin with "x-"
  bool is_map() const { return map_ != nullptr; }

 private:
  const YamlNode* map_ = nullptr;
  const YamlNode& node_;
  std::string owner_;
  Errors& errors_;
  std::vector<std::string> known_;
  std::vector<std::pair<std::string, std::string>> missing_;  // with their examples
};

// Each says what is wrong and returns empty when `node` does not fit. `what` names the value in
// messages: "'seeds'".
std::optional<std::string> ReadText(const YamlNode& node, const std::string& what, Errors& errors);
std::optional<bool> ReadBool(const YamlNode& node, const std::string& what, Errors& errors);
std::optional<int> ReadInt(const YamlNode& node, const std::string& what, Errors& errors, int min,
                           int max);
std::optional<double> ReadNumber(const YamlNode& node, const std::string& what, Errors& errors);
std::optional<std::int64_t> ReadBytes(const YamlNode& node, const std::string& what,
                                      Errors& errors);  // "4GiB"
// A list that is not empty, or a single value in place of a list of one.
std::vector<const YamlNode*> ReadList(const YamlNode& node, const std::string& what,
                                      Errors& errors);
std::vector<std::string> ReadTexts(const YamlNode& node, const std::string& what, Errors& errors);
// A value of the type, range and choices that `info` gives.
std::optional<Json> ReadValue(const YamlNode& node, const ParamInfo& info, Errors& errors);

// Whether a map with at least one entry stands here.
bool CheckFilledMap(const YamlNode& node, const std::string& what, Errors& errors,
                    const std::string& example = "");
// Checks a name for formulas and folders: lower-case letters, digits and '_', a letter first.
bool CheckName(const YamlNode& key, const std::string& what, Errors& errors,
               bool may_have_dash = false);

// "did you mean 'x'?", or the list of what is known when it is short, else empty.
std::string SuggestName(const std::string& name, const std::vector<std::string>& known);

}  // namespace trainwreck
