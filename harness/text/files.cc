#include "harness/text/files.h"

#include <sys/stat.h>

#include <algorithm>
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

std::int64_t FileSize(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? std::int64_t{status.st_size} : 0;
}

std::string ReadTail(const std::string& path, std::int64_t begin, std::int64_t bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::int64_t size = file ? static_cast<std::int64_t>(file.tellg()) : 0;
  std::string text(static_cast<std::size_t>(std::clamp<std::int64_t>(size - begin, 0, bytes)),
                   '\0');
  file.seekg(size - static_cast<std::int64_t>(text.size()));
  if (!text.empty()) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

}  // namespace trainwreck
