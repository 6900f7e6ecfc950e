// Whether a formula makes sense over a target's signals and a run of a given length.
#pragma once

#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"

namespace trainwreck::formula {

// All errors, in the order of the text.
std::vector<FormulaError> CheckTree(const Node& root, const Vocabulary& vocabulary);

}  // namespace trainwreck::formula
