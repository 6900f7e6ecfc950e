// What an expression's values are: whether they may be compared with ==, and in which unit.
#pragma once

#include "harness/formula/node.h"
#include "harness/protocol/description.h"

namespace trainwreck::formula {

// Counts, digests and whole numbers made of them without rounding.
bool IsExact(const Node& expression, const TargetDescription& target);

// A number as it was recorded, not a computed one: it may be compared with a whole number by ==.
bool IsAsRecorded(const Node& expression);

// Octaves where both sides are positive quantities on a log scale: log signals and positive
// constants, joined by + * / and functions that keep the order. Else the plain difference.
bool ComparesInOctaves(const Node& comparison, const TargetDescription& target);

}  // namespace trainwreck::formula
