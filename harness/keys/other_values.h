// What a recipe key could be besides what it is, from its description.
#pragma once

#include <vector>

#include "harness/protocol/description.h"

namespace trainwreck {

// Likely ones first: every other choice, the other truth, for numbers multiples and parts of
// `base`, bounds, and where it is 0 some that are not. All fit the description. Empty where it
// tells too little, as of a list.
std::vector<Json> OtherValues(const ParamInfo& info, const Json& base);

}  // namespace trainwreck
