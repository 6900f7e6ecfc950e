// The patterns that have a name: nonfinite, spike, plateau, oscillates, holds.
#pragma once

#include <optional>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"
#include "harness/formula/samples.h"
#include "harness/formula/value.h"

namespace trainwreck::formula {

// The unit in which an atom has a margin of its own; none for events and nonfinite.
std::optional<Unit> AtomUnit(const Node& atom, const TargetDescription& target);

// `detector` is one of nonfinite, spike, plateau, oscillates; docs/reference/formulas.md defines
// them. Linear in the steps.
Track Detect(const Node& detector, const Samples& samples, int steps);

// At each step: whether `track` holds there and at each of the `length - 1` steps before. False
// while there were not as many.
Track HeldFor(Track track, double length);

}  // namespace trainwreck::formula
