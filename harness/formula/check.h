// Whether a formula makes sense over a target's signals and a run of a given length.
#pragma once

#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"

namespace trainwreck::formula {

// All errors, in the order of the text. With `at_steps` it is to be read at each step, as if inside
// a temporal operator.
std::vector<FormulaError> CheckTree(const Node& root, const Vocabulary& vocabulary, bool at_steps);

}  // namespace trainwreck::formula
