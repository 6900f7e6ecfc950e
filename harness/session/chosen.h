// From a command line to its cases: finds, loads, plans and selects scenario files.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/run.h"
#include "harness/session/options.h"
#include "harness/session/session.h"

namespace trainwreck {

// Reads texts such as `optimizer.lr=0.1` as changes of the recipe, and checks them against the
// target. Throws UsageError.
Changes ParseOverrides(const std::vector<std::string>& texts, const TargetDescription& target);

// The scenarios and their cases.
struct Chosen {
  std::vector<Scenario> scenarios;
  std::vector<Case> cases;
  int planned = 0;                    // cases before -k, -t, --point and --shard
  std::vector<std::string> selected;  // names of cases before --shard
  std::string selection_digest;       // of those: their names, and what they claim
};

// Throws UsageError, or ConfigurationError after printing what is wrong with the files.
Chosen ChooseCases(const Session& session, const SelectionOptions& selection,
                   const PlanOptions& plan, const std::vector<std::string>& points);

// The named scenario, with the named point or its only one. Throws UsageError when there are
// several.
Scenario LoadOnePoint(const Session& session, const std::string& name);

}  // namespace trainwreck
