// Shell patterns over names: of modules, scenarios, files.
#pragma once

#include <string_view>

namespace trainwreck {

// '*' is any run of characters, dots too; '?' is any one.
bool GlobMatches(std::string_view glob, std::string_view text);

}  // namespace trainwreck
