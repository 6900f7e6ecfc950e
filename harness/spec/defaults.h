// What the scenarios of a folder have in common: its defaults.yaml, and those of the folders above
// it up to the folder of the scenarios. The nearest wins, key by key; a scenario outdoes them all.
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

// All that the defaults of the folders above `file` give, as one map; empty when there are none,
// and no map (kBad) when one of them cannot be read.
std::optional<YamlNode> ParseDefaults(const std::string& file, const std::string& scenarios_root,
                                      Errors& errors);

// JSON Schema (draft 7) of a defaults.yaml for this target, for editors.
Json DefaultsSchema(const TargetDescription& target);

// Maps merge key by key; everything else is replaced by what `child` says.
void MergeInto(YamlNode& base, YamlNode child);

}  // namespace trainwreck
