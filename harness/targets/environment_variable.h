// A variable of this process's environment.
#pragma once

#include <cstdlib>
#include <string>

namespace trainwreck {

inline std::string Variable(const char* name, const std::string& fallback = "") {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

}  // namespace trainwreck
