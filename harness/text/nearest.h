// The known name that a mistyped one was probably meant to be. Used for the hints of errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainwreck {

// The nearest name by edit distance (a swap of neighbours counts one), the first of equals. Empty
// when none is near: more than a third of the letters would have to change.
std::string NearestName(std::string_view name, const std::vector<std::string>& known);

// "did you mean 'loss'?", or nothing.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& known);

// The same behind a sentence: " (did you mean 'loss'?)".
std::string NearestHint(std::string_view name, const std::vector<std::string>& known);

}  // namespace trainwreck
