// The trace of a finished run, from its folder, with the names that a formula may mention. For
// `check` and for the metric of `bisect`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/session/storage.h"

namespace trainwreck {

struct StoredTrace {
  RunTrace trace;
  std::optional<Run> run;             // of folders that `run` stored
  std::optional<RunEnd> end;          // of such a run
  std::vector<std::string> problems;  // of its files; also printed on stderr
  bool has_open_end = false;          // the run may go on for an unknown number of steps
};

// Facts that the user gives about a trace without a stored plan.
struct TraceFacts {
  bool finished = false;
  int steps = 0;             // planned; 0: not known
  double furthest_step = 0;  // named in formulas: an unfinished run may still reach it
};

// A trace without an end belongs to an unfinished run, and its unreadable parts are lost, not
// absent. Throws UsageError when the folder is not one of a run; problems of the trace go to
// stderr.
StoredTrace LoadStoredTrace(const std::string& folder, const TraceFacts& facts = {});

// Throws UsageError when the run has not this rank.
void RequireRank(const StoredTrace& stored, int rank);

// The other arms that the formulas mention: the named ones and, for a stored run, those of the same
// seed beside it.
std::map<std::string, StoredTrace> LoadStoredArms(
    const std::string& folder, const std::vector<std::pair<std::string, std::string>>& named,
    const StoredTrace& self, const std::vector<formula::Formula>& formulas,
    const TraceFacts& facts = {});

formula::Vocabulary VocabularyOf(const StoredTrace& self,
                                 const std::map<std::string, StoredTrace>& arms,
                                 const TargetDescription& target);

// The margin of a formula over a stored run, in its main unit: the middle where it is an interval.
// Empty when it is unknown. Throws UsageError when the formula does not fit.
std::optional<double> StoredMargin(const std::string& folder, const formula::Formula& formula,
                                   const TargetDescription& target);

}  // namespace trainwreck
