// Finds claims that cannot fail: a scenario must not make a claim that no run could contradict.
#pragma once

#include "harness/spec/reader.h"

namespace trainwreck {

// Reports symptoms that only say "the fault fired", remedies that only shorten the run, and
// expectations that would accept any outcome.
void CheckClaims(const Draft& draft, const TargetDescription& target, Errors& errors);

}  // namespace trainwreck
