// Claims that cannot fail: what a scenario must not say because no run could contradict it.
#pragma once

#include "harness/spec/reader.h"

namespace trainwreck {

// Symptoms that are no more than "the fault fired", remedies that only shorten the run, and
// expectations that would call anything a success.
void CheckClaims(const Draft& draft, const TargetDescription& target, Errors& errors);

}  // namespace trainwreck
