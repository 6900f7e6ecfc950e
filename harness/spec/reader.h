// From the YAML tree of a scenario to its parts: each read and checked by itself. Validate
// (validate.h) checks the parts together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/spec/scenario.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

// The place where a formula was written, and the parts of its text that replaced names of other
// checks.
struct FormulaPlace {
  struct Inserted {
    std::size_t begin, end;  // in the formula's text
    std::size_t from, to;    // of the name, as written
    std::string check;
  };
  const YamlNode* node = nullptr;
  std::vector<Inserted> inserted;
  bool is_made = false;  // from `of` and `within`: its text is not in the file
};

// A scenario as far as it could be read. It also has the names of broken parts, so one mistake is
// not reported again wherever the name is used.
struct Draft {
  Scenario scenario;
  const YamlNode* root = nullptr;
  std::vector<std::string> healthy_names;
  std::vector<std::string> symptom_names;
  std::vector<std::string> fault_ids;
  std::vector<std::string> twin_names;
  std::vector<std::string> phase_names;
  std::map<std::string, FormulaPlace> formulas;  // of "symptoms.blows_up"
  bool is_recipe_sound = true;                   // false: steps and ranks cannot be relied on
  bool has_seed_require = false;
};

// Takes the parts of points out of the matrix (point_parts.h), so that `root` changes.
Draft ReadScenario(YamlNode& root, const TargetDescription& target, Errors& errors);

// The place of a value: follows keys and list indices ("2") from `root` as far as they exist. An
// element with dots may mean nested keys, as in recipes. For a map, a list or a missing value it is
// the place of the key.
const YamlNode& Locate(const YamlNode& root, const std::vector<std::string>& path);

// The entry of the list at `path` that reads `text`, or the single value in its place.
const YamlNode& LocateEntry(const YamlNode& root, const std::vector<std::string>& path,
                            const std::string& text);

}  // namespace trainwreck
