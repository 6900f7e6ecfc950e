// Other values of a recipe key, from its description.
#pragma once

#include <vector>

#include "harness/protocol/description.h"

namespace trainwreck {

// Other values than `base`, likely ones first: every other choice; the other truth value; for
// numbers multiples and parts of `base`, bounds, and values other than 0 where it is 0. All fit the
// description. Empty where it says too little, as for a list.
std::vector<Json> OtherValues(const ParamInfo& info, const Json& base);

}  // namespace trainwreck
