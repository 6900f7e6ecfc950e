// The meaning of formulas written down a second time, as plainly as it can be: by recursion over
// the tree at one step, quadratic and worse. The property tests hold the evaluator against it.
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
  // The worst (`smallest`) or best of the operand at these steps, open ones left out.
  Value Over(const Node& operand, const std::vector<int>& steps, bool smallest) const;
  // A sparse signal of it has no sample there; `for_good`: and will have none.
  bool Lacks(const Node& node, int step, bool for_good) const;
  double Number(const Node& node, int step) const;  // NaN: unknown
  double Sample(const Node& signal, int step) const;

  const RunTrace& run_;
};

}  // namespace trainwreck::formula::testing
