// `bisect --between A B`: which of the recipe's differences between two scenario files flips the
// verdict.
#pragma once

#include "harness/bisect/options.h"

namespace trainwreck {

int BisectBetween(const BisectOptions& options);

}  // namespace trainwreck
