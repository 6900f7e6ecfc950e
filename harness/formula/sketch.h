// What a formula compares, for charts: see Sketch in formula.h.
#pragma once

#include <vector>

#include "harness/formula/evaluator.h"
#include "harness/formula/node.h"

namespace trainwreck::formula {

std::vector<Sketch> SketchesOf(const Evaluator& evaluator, const Node& root);

}  // namespace trainwreck::formula
