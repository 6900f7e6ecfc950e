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

  // Outside any temporal operator: numbers are constants of the run, an event means "at any time".
  Value OverRun(const Node& formula, const Scope& scope) const;

  // Inside one: what the formula is worth at each step.
  Track AtSteps(const Node& formula, const Scope& scope) const;

  // One number for each step, or a single one that holds for all.
  std::vector<Interval> Numbers(const Node& expression, const Scope& scope, bool at_steps) const;

 private:
  Value TemporalOverRun(const Node& node, const Scope& scope) const;
  Track TemporalAtSteps(const Node& node, const Scope& scope) const;
  Track DetectorAtSteps(const Node& node, const Scope& scope) const;
  Track CompareAtSteps(const Node& node, const Scope& scope) const;
  Track EventAtSteps(const Node& node, const Scope& scope) const;
  // Steps at which a sparse signal has no sample: in `left_out` where it never will have one, in
  // `lacking` also where it may still come. Both are empty where no sparse signal is mentioned.
  struct Absence {
    std::vector<std::uint8_t> left_out;
    std::vector<std::uint8_t> lacking;
  };
  void MarkAbsent(const Node& expression, const Scope& scope, Absence& absence) const;
  void MarkAbsentInBoth(const Node& distance, const Scope& scope, Absence& absence) const;
  // Of every rank; empty where one is chosen further out.
  std::vector<std::vector<Interval>> NumbersByRank(const Node& node, Scope scope,
                                                   bool at_steps) const;
  std::vector<Interval> SpreadNumbers(const Node& node, const Scope& scope, bool at_steps) const;
  std::vector<Interval> TotalNumbers(const Node& node, const Scope& scope, bool at_steps) const;
  std::vector<Interval> DistanceNumbers(const Node& signal, const Scope& scope) const;
  std::vector<Interval> RoundingNumbers(const Node& signal, const Scope& scope) const;

  Context context_;
};

}  // namespace trainwreck::formula
