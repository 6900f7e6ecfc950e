// Whole files as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainwreck {

// The text of a file; empty when it cannot be opened or read, with the reason in errno.
std::optional<std::string> ReadFile(const std::string& path);

std::int64_t FileSize(const std::string& path);  // 0 when there is none

// The last bytes of a file, so many at most, of those from `begin` on; empty where there are none.
std::string ReadTail(const std::string& path, std::int64_t begin, std::int64_t bytes);

}  // namespace trainwreck
