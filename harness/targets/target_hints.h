// What people mean when they write something else in trainwreck.yaml: habits of shells, of Python,
// of other formats.
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

// A group that the pattern names twice; RE2 takes it, and only one of them would be read.
std::string GroupGivenTwice(const std::string& pattern);

// What to do about a pattern that RE2 does not take.
std::string PatternHint(const std::string& pattern);

}  // namespace trainwreck
