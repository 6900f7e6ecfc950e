// The context of an evaluation: the runs, and the place in them at which a subformula is read.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"
#include "harness/formula/samples.h"

namespace trainwreck::formula {

struct Scope {
  int rank = 0;           // the rank of signals without @
  bool in_ranks = false;  // inside all_ranks or any_rank: events count by rank, too
  std::map<std::string, std::string> modules;  // glob -> the module that it stands for
};

class Context {
 public:
  Context(const Runs& runs, const TargetDescription& target);

  const RunTrace& self() const { return *runs_.self; }
  const TargetDescription& target() const { return target_; }
  int steps() const { return steps_; }
  const RunTrace* RunOf(const std::string& arm) const;  // null: not there
  const std::vector<Runs>& seeds() const { return runs_.seeds; }

  Samples SamplesOf(const Node& signal, const Scope& scope) const;
  // The same signal in control, in the arm "control" itself, and in the rounding arms.
  Samples ControlSamplesOf(const Node& signal, const Scope& scope) const;
  Samples TrueControlSamplesOf(const Node& signal, const Scope& scope) const;
  std::vector<Samples> RoundingSamplesOf(const Node& signal, const Scope& scope) const;

  // One scope for each choice of modules for the globs below `node` that have none yet. Empty when
  // a glob matches nothing.
  std::vector<Scope> Bound(const Node& node, const Scope& scope) const;

  // The matching events, in the order of the trace.
  std::vector<const Event*> EventsOf(const Node& event, const Scope& scope) const;
  int StepOf(const Event& event) const;  // inside the run
  // Step -> the number of ranks that the runs of the signals below `node` had there.
  std::vector<int> WorldsOf(const Node& node) const;
  // Whether events of this arm may still be added, or some were lost.
  bool EventsMayGrow(const Node& event) const;

 private:
  std::vector<std::string> ModulesOf(const Node& node, const std::string& glob,
                                     const Scope& scope) const;
  Samples SamplesIn(const RunTrace* run, const Node& signal, const Scope& scope) const;
  const RunTrace* Find(const std::string& arm) const;
  Runs runs_;
  const TargetDescription& target_;
  int steps_;
};

}  // namespace trainwreck::formula
