#include "harness/text/files.h"

#include <fstream>

namespace trainwreck {

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char buffer[1 << 14];
  while (file.read(buffer, sizeof buffer), file.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) return std::nullopt;
  return text;
}

}  // namespace trainwreck
