#include "harness/cli/table.h"

#include <algorithm>

namespace trainwreck {

void PrintTable(std::ostream& out, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    widths.resize(std::max(widths.size(), rows[r].size()), 0);
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      widths[c] = std::max(widths[c], rows[r][c].size() + (r == 0 && c == 0 ? 2 : 0));
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line = r == 0 ? "# " : "";
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const std::size_t used = rows[r][c].size() + (r == 0 && c == 0 ? 2 : 0);
      line += rows[r][c];
      if (c + 1 < rows[r].size()) line += std::string(widths[c] - used + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

}  // namespace trainwreck
