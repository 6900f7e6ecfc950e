// A verdict about one seed alone (`run --each-seed`), as a bisection sees it.
#pragma once

#include "harness/bisect/bisection.h"
#include "harness/judge/verdict.h"

namespace trainwreck {

SeedResult SeedResultOf(const Verdict& verdict, int commit, int seed);

}  // namespace trainwreck
