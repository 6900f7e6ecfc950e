// Shows the claims of a case (harness/judge/arm_judge.h) without judging them: for `run --arm`,
// `run --dry-run` and `explain`.
#pragma once

#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/judge/arm_judge.h"
#include "harness/plan/run.h"

namespace trainwreck {

// Arms whose traces are needed to read the claims of `arm`, itself included.
std::vector<std::string> ArmsNeeded(const Case& one, const ArmPlan& arm);

// "+10 steps"; both ends of an interval; "" when the reading has no margin.
std::string MarginText(const formula::Reading& reading);

}  // namespace trainwreck
