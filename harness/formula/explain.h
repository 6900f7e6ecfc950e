// Finds the step and the values that decided a formula, for the reports.
#pragma once

#include <string>

#include "harness/formula/evaluator.h"

namespace trainwreck::formula {

struct Explanation {
  int step = -1;     // -1: nowhere in particular
  std::string seen;  // "mean(loss[-20:]) = 3.22, 0.8 * mean(loss[:5]) = 2.1"
};

// `truth` is what the evaluator found for the whole formula.
Explanation Explain(const Evaluator& evaluator, const Node& root, Tri truth);

}  // namespace trainwreck::formula
