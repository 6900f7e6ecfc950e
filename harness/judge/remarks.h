// Remarks on a case, which are no failures: arms that are equal bit for bit, seeds that change
// nothing, seeds that were tolerated. Private to this package.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

std::vector<std::string> RemarksOn(const CaseResults& results, const TargetDescription& target,
                                   const std::vector<int>& tolerated_seeds);

}  // namespace trainwreck
