// The common part of a folder's scenarios: its defaults.yaml, and those of the folders above it, up
// to the folder of the scenarios. The nearest file wins, key by key; a scenario's own keys win over
// all of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/spec/scenario.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

// The keys that may stand in a defaults.yaml.
const std::vector<std::string>& DefaultsKeys();

// The path of `file` below the root without its ending, such as "nan/lr-too-high"; empty: outside.
std::string NameBelow(const std::string& file, const std::string& scenarios_root);

// The defaults of all folders above `file`, merged into one map; empty when there are none, and
// kBad when one of them cannot be read.
std::optional<YamlNode> ParseDefaults(const std::string& file, const std::string& scenarios_root,
                                      Errors& errors);

// JSON Schema (draft 7) of a defaults.yaml for this target, for editors.
Json DefaultsSchema(const TargetDescription& target);

// Merges `child` into `base`. Maps merge key by key; any other value is replaced by that of
// `child`.
void MergeInto(YamlNode& base, YamlNode child);

}  // namespace trainwreck
