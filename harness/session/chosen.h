// From a command line to the cases it means: scenario files found, loaded, planned, selected.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/run.h"
#include "harness/session/options.h"
#include "harness/session/session.h"

namespace trainwreck {

// `optimizer.lr=0.1` texts as changes of the recipe, checked against the target. Throws UsageError.
Changes ParseOverrides(const std::vector<std::string>& texts, const TargetDescription& target);

// Scenarios and the cases made of them.
struct Chosen {
  std::vector<Scenario> scenarios;
  std::vector<Case> cases;
  int planned = 0;   // cases before -k, -t, --point and --shard
  int selected = 0;  // before --shard
};

// Throws UsageError, or ConfigurationError after printing what is wrong with the files.
Chosen ChooseCases(const Session& session, const SelectionOptions& selection,
                   const PlanOptions& plan, const std::vector<std::string>& points);

// The scenario that is named, with the point that is named, or its only one. Throws UsageError when
// there are several.
Scenario LoadOnePoint(const Session& session, const std::string& name);

}  // namespace trainwreck
