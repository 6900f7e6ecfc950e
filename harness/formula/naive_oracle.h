// The meaning of formulas written down a second time, as plainly as it can be: by recursion over
// the tree at one step, quadratic and worse. The property tests hold the evaluator against it.
#pragma once

#include "harness/formula/node.h"
#include "harness/formula/value.h"
#include "harness/protocol/trace.h"

namespace trainwreck::formula::testing {

// Covers rank 0 of a run by itself: comparisons of bare signals, indices, numbers and the functions
// mean, median and sum; nonfinite, spike, oscillates, holds; events by name; all of logic; temporal
// operators with windows in steps. Gives the truth and the margins in octaves and plain units.
class NaiveOracle {
 public:
  explicit NaiveOracle(const RunTrace& run) : run_(run) {}

  Value OverRun(const Node& node) const;

 private:
  Value At(const Node& node, int step) const;
  Value CompareAt(const Node& node, int step) const;
  Value DetectorAt(const Node& node, int step) const;
  double Number(const Node& node, int step) const;  // NaN: unknown
  double Sample(const Node& signal, int step) const;

  const RunTrace& run_;
};

}  // namespace trainwreck::formula::testing
