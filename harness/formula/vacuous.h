// What a formula says of every run alike, so that it can neither hold nor fail by anything that a
// run does: `loss <= loss`, `count(loss[:]) >= 0`, `p or not p`.
#pragma once

#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"

namespace trainwreck::formula {

// All such parts, outermost first, in the order of the text. Signals of `own_arm` are taken for the
// run's own: what is vacuous where that arm compares itself with itself. It decides what it can:
// linear arithmetic, the signs of positive quantities, the order of functions over slices of one
// signal, and logic over up to eight different parts.
std::vector<FormulaError> FindVacuousParts(const Node& root, const Vocabulary& vocabulary,
                                           const std::string& own_arm);

}  // namespace trainwreck::formula
