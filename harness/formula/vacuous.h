// Finds the parts of a formula whose truth does not depend on the run: `loss <= loss`,
// `count(loss[:]) >= 0`, `p or not p`.
#pragma once

#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"

namespace trainwreck::formula {

// All such parts, outermost first, in the order of the text. Signals of `own_arm` count as the
// run's own, to find the parts that are vacuous where that arm compares itself with itself. It
// decides what is decidable by linear arithmetic, the signs of positive quantities, the order of
// functions over slices of one signal, and logic over up to eight different parts.
std::vector<FormulaError> FindVacuousParts(const Node& root, const Vocabulary& vocabulary,
                                           const std::string& own_arm);

}  // namespace trainwreck::formula
