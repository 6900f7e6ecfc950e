// The type of an expression's values: whether they may be compared with ==, and in which unit.
#pragma once

#include "harness/formula/node.h"
#include "harness/protocol/description.h"

namespace trainwreck::formula {

// Whether its values are counts, digests or whole numbers computed from them without rounding.
bool IsExact(const Node& expression, const TargetDescription& target);

// Whether it is a number as recorded, not a computed one: it may be compared with a whole number by
// ==.
bool IsAsRecorded(const Node& expression);

// Whether the margin is in octaves: both sides are positive quantities on a log scale, which are
// log signals and positive constants, joined by + * / and monotonic functions. Else it is the plain
// difference.
bool ComparesInOctaves(const Node& comparison, const TargetDescription& target);

}  // namespace trainwreck::formula
