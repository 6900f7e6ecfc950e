// Checks of everything that depends on the point of the matrix: resolved recipes, triggers,
// parameters, and the formulas' windows.
#pragma once

#include "harness/spec/reader.h"

namespace trainwreck {

// Checks every point with every arm; returns the most ranks that any run has.
int CheckPoints(const Draft& draft, const TargetDescription& target, Errors& errors);

}  // namespace trainwreck
