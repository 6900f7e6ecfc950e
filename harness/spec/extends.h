// `extends`: one scenario taken over by another. Maps merge key by key, everything else is
// replaced.
#pragma once

#include <optional>
#include <string>

#include "harness/spec/scenario.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

inline constexpr int kMaxExtends = 4;  // files in a chain above the first

// The tree of `text` with everything that it extends; its nodes remember their files.
std::optional<YamlNode> ParseWithExtends(const std::string& text, const std::string& file,
                                         const LoadOptions& options, Errors& errors);

}  // namespace trainwreck
