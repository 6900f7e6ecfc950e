// Hints for common mistakes in trainwreck.yaml: habits from shells, Python and other formats.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trainwreck {

// "did you mean 'run.seed'?" for `seed`, 'lr' for `recipe.lr`, else by SuggestName.
std::string SuggestPlaceholder(const std::string& name, const std::vector<std::string>& known);

// "did you mean 'number'?" for `float`, else by SuggestName.
std::string SuggestType(const std::string& name, const std::vector<std::string>& known);

// A placeholder as a shell or Python writes it, `${lr}` or `%(lr)s`, where one of `known` is meant.
struct ForeignPlaceholder {
  std::string text;       // "${lr}"
  std::string name;       // "lr"
  std::size_t begin = 0;  // in the source
};
std::optional<ForeignPlaceholder> FindForeignPlaceholder(const std::string& text,
                                                         const std::vector<std::string>& known);

// A group name that the pattern has twice. RE2 accepts it, but only one of the groups would be
// read.
std::string GroupGivenTwice(const std::string& pattern);

// The likely fix for a pattern that RE2 rejects.
std::string PatternHint(const std::string& pattern);

}  // namespace trainwreck
