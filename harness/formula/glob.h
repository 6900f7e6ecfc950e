// Patterns over module names.
#pragma once

#include <string_view>

namespace trainwreck::formula {

// '*' is any run of characters, dots too; '?' is any one.
bool MatchesGlob(std::string_view pattern, std::string_view name);

}  // namespace trainwreck::formula
