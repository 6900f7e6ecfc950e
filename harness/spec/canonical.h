// The canonical form of a scenario file, for `trainwreck fmt`. It keeps the meaning of the file and
// all of its comments. It leaves out values that the folders' defaults give, and a name that equals
// the path.
#pragma once

#include <optional>
#include <string>

#include "harness/yaml/yaml.h"

namespace trainwreck {

// Empty with an error for a file that is no scenario (and no defaults.yaml), or whose comments
// cannot be kept.
std::optional<std::string> CanonicalScenario(const std::string& text, const std::string& file,
                                             const std::string& scenarios_root, Errors& errors);

}  // namespace trainwreck
