// The trace of a run that is over, from its folder, with what a formula may mention there: for
// `check` and for the metric of `bisect`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/storage.h"
#include "harness/formula/formula.h"

namespace trainwreck {

struct StoredTrace {
  RunTrace trace;
  std::optional<Run> run;  // of folders that `run` stored
  std::string end;
};

// Throws UsageError for what is no folder of a run; problems of the trace go to stderr.
StoredTrace LoadStoredTrace(const std::string& folder);

// Other arms that the formulas mention: those that are named, and of a stored run those of the same
// seed, which lie beside it.
std::map<std::string, StoredTrace> LoadStoredArms(
    const std::string& folder, const std::vector<std::pair<std::string, std::string>>& named,
    const StoredTrace& self, const std::vector<formula::Formula>& formulas);

formula::Vocabulary VocabularyOf(const StoredTrace& self,
                                 const std::map<std::string, StoredTrace>& arms,
                                 const TargetDescription& target);

// The margin of a formula over a stored run, in its main unit: the middle where it is an interval.
// Empty when it is unknown. Throws UsageError when the formula does not fit.
std::optional<double> StoredMargin(const std::string& folder, const formula::Formula& formula,
                                   const TargetDescription& target);

}  // namespace trainwreck
