// Recipes and their changes in YAML: nested or dotted keys, flattened and checked against a target.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/spec/scenario.h"
#include "harness/yaml/fields.h"

namespace trainwreck {

// `what` names the map in messages: "recipe", "remedy 'clip'".
std::vector<std::pair<std::string, Json>> ReadRecipe(const YamlNode& node, const std::string& what,
                                                     const TargetDescription& target,
                                                     Errors& errors);

// The keys `set` and `scale` of a remedy, a decoy or a matrix point.
Changes ReadChanges(Fields& fields, const std::string& what, const TargetDescription& target,
                    Errors& errors);

}  // namespace trainwreck
