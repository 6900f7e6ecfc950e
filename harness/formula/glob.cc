#include "harness/formula/glob.h"

#include <cstddef>

namespace trainwreck::formula {

bool MatchesGlob(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, in = 0;
  std::size_t star = std::string_view::npos, resume = 0;  // where to try again after the last '*'
  while (in < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = in;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[in])) {
      ++at;
      ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in = ++resume;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

}  // namespace trainwreck::formula
