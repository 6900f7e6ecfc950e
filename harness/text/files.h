// Whole files as text.
#pragma once

#include <optional>
#include <string>

namespace trainwreck {

// The text of a file; empty when it cannot be opened or read, with the reason in errno.
std::optional<std::string> ReadFile(const std::string& path);

}  // namespace trainwreck
