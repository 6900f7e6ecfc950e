// Writes a YAML tree in one form, with its comments. A value that fits on one line is written on
// one line; longer text is folded.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/yaml/comments.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

struct YamlStyle {
  std::size_t width = 100;
  // Whether the map under these keys has an entry a line, even where one line would hold it all.
  std::function<bool(const std::vector<std::string>& path)> is_block;
};

std::string WriteYaml(const YamlNode& root, const Comments& comments, const YamlStyle& style);

// Whether both say the same: the same keys in the same order, the same values. Quotes count where a
// reader could take the text for a number or a boolean.
bool IsSameTree(const YamlNode& a, const YamlNode& b);

}  // namespace trainwreck
