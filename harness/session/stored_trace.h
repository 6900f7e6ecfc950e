// The trace of a run that is over, from its folder, with what a formula may mention there: for
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
  std::vector<std::string> problems;  // of its files; they went to stderr, too
  bool has_open_end = false;          // it may go on, nobody knows for how many steps
};

// What a person knows of a trace that nobody stored a plan beside.
struct TraceFacts {
  bool finished = false;
  int steps = 0;             // planned; 0: not known
  double furthest_step = 0;  // that formulas name: a run that goes on may still come there
};

// A trace that does not say that it ended is that of a run that goes on, and what could not be read
// of it is lost, not absent. Throws UsageError for what is no folder of a run; problems of the
// trace go to stderr.
StoredTrace LoadStoredTrace(const std::string& folder, const TraceFacts& facts = {});

// Other arms that the formulas mention: those that are named, and of a stored run those of the same
// seed, which lie beside it.
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
