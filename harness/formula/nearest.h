// The known name that a mistyped one was probably meant to be. Used for the hints of errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainwreck::formula {

// Nearest by edit distance (a swap of neighbours counts one), the first of equals; empty when none
// is near: more than a third of the letters would have to change.
std::string NearestName(std::string_view name, const std::vector<std::string>& known);

}  // namespace trainwreck::formula
