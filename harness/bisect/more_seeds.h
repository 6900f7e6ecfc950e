// Runs the seeds that a comparison lacks, with the program that ran the others.
#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/missing_seeds.h"
#include "harness/history/record.h"
#include "harness/session/options.h"

namespace trainwreck {

// The options of a recorded `trainwreck run` that change what a seed gives.
struct RecordedRun {
  CommonOptions common;
  std::vector<std::string> paths, points, set;
  int cores = 0;
  bool exec = false;
  bool full = false;
};

struct MoreSeeds {
  std::vector<Record> records;
  std::string why;  // not empty: why there are no new seeds, or not all
};

// The words after the program's name that run these seeds as `recorded` did.
std::vector<std::string> WordsFor(const RecordedRun& recorded, const MissingSeeds& missing,
                                  const std::string& output);

// Runs these seeds as the invocation of `side` would have: with its target, overrides and
// isolation. Runs in this folder while the target here is the recorded one; else in a worktree of
// the recorded commit, when that commit is there. `program` is trainwreck. Throws Interrupted.
MoreSeeds RunMissingSeeds(const Record& side, const RecordedRun& recorded,
                          const std::vector<MissingSeeds>& missing,
                          const std::string& program = "/proc/self/exe");

struct Sides {
  Record a, b;
};

struct SeedsRequest {
  std::string history;  // where they are kept; see HistoryPath
  int at_most = 0;      // of each scenario; below 1: as many as are wanted
  // Reads a recorded command line; empty: it was no `trainwreck run`.
  std::function<std::optional<RecordedRun>(const std::string& command_line)> read;
  std::string program = "/proc/self/exe";
};

// Runs the `wanted` seeds of the scenarios that each side lacks. Adds them to the side and to its
// run in the history. Says on `out` what it does, or why it cannot and what the user would have to
// do. Returns whether any seed was added. Throws Interrupted.
bool AddMissingSeeds(Sides& sides, const std::map<std::string, int>& wanted,
                     const SeedsRequest& request, std::ostream& out);

}  // namespace trainwreck
