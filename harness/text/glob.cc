#include "harness/text/glob.h"

#include <cstddef>

namespace trainwreck {

bool GlobMatches(std::string_view glob, std::string_view text) {
  std::size_t at = 0, in = 0;
  std::size_t star = std::string_view::npos, resume = 0;  // where to try again after the last '*'
  while (in < text.size()) {
    if (at < glob.size() && glob[at] == '*') {
      star = at++;
      resume = in;
    } else if (at < glob.size() && (glob[at] == '?' || glob[at] == text[in])) {
      ++at;
      ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in = ++resume;
    } else {
      return false;
    }
  }
  while (at < glob.size() && glob[at] == '*') ++at;
  return at == glob.size();
}

}  // namespace trainwreck
