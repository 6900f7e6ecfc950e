// What a scenario claims of one arm, check by check, and how one run of it reads: for `run --arm`,
// `run --dry-run` and `explain`. Verdicts over seeds are harness/judge's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/plan/run.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

struct Claim {
  const Check* check = nullptr;
  std::string role;      // "healthy", "symptom", "quality"
  bool expected = true;  // the truth that is claimed
};

std::vector<Claim> ClaimsOf(const Case& one, const ArmPlan& arm);

// Arms whose traces are needed to read the claims of `arm`, itself included.
std::vector<std::string> ArmsNeeded(const Case& one, const ArmPlan& arm);

// "+10 steps of 60" as "+10 steps"; "" when the reading has no margin.
std::string MarginText(const formula::Reading& reading);

}  // namespace trainwreck
