// `bisect --between A B`: which of the recipe's differences between two scenario files flips the
// verdict.
#pragma once

#include "harness/session/options.h"

namespace trainwreck {

int BisectBetween(const Options& options);

}  // namespace trainwreck
