// What reports show of each arm. Private to this package.
#pragma once

#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

std::vector<ArmSummary> SummarizeArms(const CaseResults& results,
                                      const std::vector<CheckResult>& checks);

}  // namespace trainwreck
