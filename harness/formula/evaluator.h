// Reads a syntax tree over the traces of runs: once for a whole run, or at every step of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/formula/scope.h"
#include "harness/formula/value.h"

namespace trainwreck::formula {

class Evaluator {
 public:
  Evaluator(const Runs& runs, const TargetDescription& target) : context_(runs, target) {}

  const Context& context() const { return context_; }

  // The value outside any temporal operator: numbers are constants of the run, an event means "at
  // any time".
  Value OverRun(const Node& formula, const Scope& scope) const;

  // The value at each step, as inside a temporal operator.
  Track AtSteps(const Node& formula, const Scope& scope) const;

  // One number for each step, or a single number for all steps.
  std::vector<Interval> Numbers(const Node& expression, const Scope& scope, bool at_steps) const;

 private:
  Value TemporalOverRun(const Node& node, const Scope& scope) const;
  Track TemporalAtSteps(const Node& node, const Scope& scope) const;
  Track DetectorAtSteps(const Node& node, const Scope& scope) const;
  Track CompareAtSteps(const Node& node, const Scope& scope) const;
  Track EventAtSteps(const Node& node, const Scope& scope) const;
  // Steps at which a sparse signal has no sample.
  // `left_out` has the steps that will never get one; `lacking` also has those that still may. Both
  // are empty where no sparse signal is mentioned.
  struct Absence {
    std::vector<std::uint8_t> left_out;
    std::vector<std::uint8_t> lacking;
  };
  void MarkAbsent(const Node& expression, const Scope& scope, Absence& absence) const;
  void MarkAbsentInBoth(const Node& distance, const Scope& scope, Absence& absence) const;
  // The numbers of every rank; empty where an outer operator chooses one rank.
  std::vector<std::vector<Interval>> NumbersByRank(const Node& node, Scope scope,
                                                   bool at_steps) const;
  std::vector<Interval> SpreadNumbers(const Node& node, const Scope& scope, bool at_steps) const;
  std::vector<Interval> TotalNumbers(const Node& node, const Scope& scope, bool at_steps) const;
  std::vector<Interval> DistanceNumbers(const Node& signal, const Scope& scope) const;
  std::vector<Interval> RoundingNumbers(const Node& signal, const Scope& scope) const;
  Interval SeedSpread(const Node& expression) const;

  Context context_;
};

}  // namespace trainwreck::formula
