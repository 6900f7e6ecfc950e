// The meaning of formulas a second time, as plainly as possible: by recursion over the tree at one
// step, in quadratic time or worse. The property tests compare the evaluator with it.
#pragma once

#include <vector>

#include "harness/formula/node.h"
#include "harness/formula/value.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck::formula::testing {

// Covers rank 0 of a run by itself: comparisons of bare signals, indices, numbers and the functions
// mean, median and sum; nonfinite, spike, oscillates, holds; events by name; all of logic; temporal
// operators with windows in steps, over sparse signals, too. Gives the truth and the margins in
// octaves and plain units.
class NaiveOracle {
 public:
  explicit NaiveOracle(const RunTrace& run) : run_(run) {}

  Value OverRun(const Node& node) const;

 private:
  Value At(const Node& node, int step) const;
  Value TemporalAt(const Node& node, int step) const;
  Value CompareAt(const Node& node, int step) const;
  Value DetectorAt(const Node& node, int step) const;
  // The worst (`smallest`) or best value of the operand at these steps, without open ones.
  Value Over(const Node& operand, const std::vector<int>& steps, bool smallest) const;
  // Whether one of its sparse signals has no sample there; with `for_good`, and never will.
  bool Lacks(const Node& node, int step, bool for_good) const;
  double Number(const Node& node, int step) const;  // NaN: unknown
  double Sample(const Node& signal, int step) const;

  const RunTrace& run_;
};

}  // namespace trainwreck::formula::testing
