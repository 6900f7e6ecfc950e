// The parts of Compare (comparison.h) that need no statistics. Private to this package.
#pragma once

#include "harness/history/comparison.h"

namespace trainwreck {

// Compares arm by arm and seed by seed: other bits, other ends.
void CompareArms(const CaseRecord& a, const CaseRecord& b, Cause cause, Comparison& comparison);

// Checks of A that B does not have in the same arm.
void FindLostChecks(const CaseRecord& a, const CaseRecord& b, Comparison& comparison);

// Whether the margin is in seconds, or the formula reads a signal of time. The machine's load moves
// such a margin too.
bool IsOfTheClock(const MarginRecord& margin);

}  // namespace trainwreck
