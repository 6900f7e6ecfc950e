// The inherited parts of a scenario: first from the scenario that it `extends`, then from the
// defaults of its folders (defaults.h).
#pragma once

#include <optional>
#include <string>

#include "harness/spec/scenario.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

inline constexpr int kMaxExtends = 4;  // files in a chain above the first

// The tree of `text` with everything that it inherits; its nodes remember their files.
std::optional<YamlNode> ParseWithExtends(const std::string& text, const std::string& file,
                                         const LoadOptions& options, Errors& errors);

}  // namespace trainwreck
