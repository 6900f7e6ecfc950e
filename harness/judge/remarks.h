// What is no failure of a case and still should be known: arms that cannot be told apart bit for
// bit, seeds that change nothing, seeds that were let go. Private to this package.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

std::vector<std::string> RemarksOn(const CaseResults& results, const TargetDescription& target,
                                   const std::vector<int>& tolerated_seeds);

}  // namespace trainwreck
