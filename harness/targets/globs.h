// Files and folders by patterns, as a shell has them: `*`, `?` and `[...]`, none of which matches a
// slash.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trainwreck {

// A placeholder `newest:checkpoint-*` stands for the newest match in the run's folders.
inline constexpr char kNewest[] = "newest:";

bool HasWildcards(const std::string& text);
// The text as a pattern that matches only this text.
std::string EscapeForGlob(const std::string& text);
// The existing matches, in the order of names.
std::vector<std::string> FindMatches(const std::string& pattern);
// The match in one of the folders that was changed last; of two changed at the same moment, the one
// with the greater number in its name.
std::optional<std::string> FindNewest(const std::vector<std::string>& folders,
                                      const std::string& pattern);

}  // namespace trainwreck
