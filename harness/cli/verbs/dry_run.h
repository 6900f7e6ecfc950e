// `run --dry-run`: what would run, and what each arm changes.
#pragma once

#include <ostream>
#include <vector>

#include "harness/plan/run.h"

namespace trainwreck {

void PrintPlan(std::ostream& out, const std::vector<Case>& cases);

}  // namespace trainwreck
