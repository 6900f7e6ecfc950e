// Recipes and their changes in YAML: nested or dotted keys, flattened and checked against a target.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/spec/scenario.h"
#include "harness/yaml/fields.h"

namespace trainwreck {

inline bool IsNumeric(ValueType type) {
  return type == ValueType::kInt || type == ValueType::kNumber;
}

// One key of the target, as a map of recipe keys names it.
struct RecipeLeaf {
  const YamlNode* key = nullptr;  // where it stands
  const YamlNode* value = nullptr;
  const ParamInfo* info = nullptr;
  bool is_by_role = false;  // role.learning_rate
};

// The recipe's keys, flattened. Keys may nest or be dotted; keys that the target does not have are
// errors.
std::vector<RecipeLeaf> FlattenRecipe(const YamlNode& node, const std::string& what,
                                      const TargetDescription& target, Errors& errors);

// The dotted keys of `set` and `scale` of an arm or a fault that the target does not have.
std::vector<std::string> LackingKeys(const YamlNode& changes, const TargetDescription& target);
// The first role among them, "clip_norm"; empty: none.
std::string LackingRole(const YamlNode& changes, const TargetDescription& target);

bool CheckScalable(const RecipeLeaf& leaf, Errors& errors);

// `what` names the map in messages: "recipe", "remedy 'clip'".
std::vector<std::pair<std::string, Json>> ReadRecipe(const YamlNode& node, const std::string& what,
                                                     const TargetDescription& target,
                                                     Errors& errors);

// The keys `set` and `scale` of a remedy, a decoy or a matrix point.
Changes ReadChanges(Fields& fields, const std::string& what, const TargetDescription& target,
                    Errors& errors);

}  // namespace trainwreck
