// Whole files as text.
#pragma once

#include <optional>
#include <string>

namespace trainwreck {

// Nothing when it cannot be opened or read: errno says why.
std::optional<std::string> ReadFile(const std::string& path);

}  // namespace trainwreck
