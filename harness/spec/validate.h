// Checks the parts of a scenario together: references, points, steps, ranks, formulas.
#pragma once

#include "harness/spec/reader.h"

namespace trainwreck {

// Reports contradictions and fills in what follows from the rest (ranks and features required).
void Validate(Draft& draft, const TargetDescription& target, const LoadOptions& options,
              Errors& errors);

}  // namespace trainwreck
