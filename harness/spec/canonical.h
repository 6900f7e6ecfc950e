// The one form of a scenario file: `trainwreck fmt`. It keeps what the file means and all of its
// comments. What the defaults of its folders give, and a name that is its path, is left out.
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
