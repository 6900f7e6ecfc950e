// The seeds that a comparison lacks, run by the program that ran the others.
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

// What a recorded `trainwreck run` was told, as far as it changes what a seed gives.
struct RecordedRun {
  CommonOptions common;
  std::vector<std::string> paths, points, set;
  int cores = 0;
  bool exec = false;
  bool full = false;
};

struct MoreSeeds {
  std::vector<Record> records;
  std::string why;  // there are none, or not all
};

// The words after the program's name that run these seeds as `recorded` did.
std::vector<std::string> WordsFor(const RecordedRun& recorded, const MissingSeeds& missing,
                                  const std::string& output);

// What the invocation of `side` would have been with these seeds alone: its target, overrides and
// isolation. In this folder when the target here is still the one that was recorded; else in a
// worktree of the recorded commit, when it is there. `program` is trainwreck. Throws Interrupted.
MoreSeeds RunMissingSeeds(const Record& side, const RecordedRun& recorded,
                          const std::vector<MissingSeeds>& missing,
                          const std::string& program = "/proc/self/exe");

struct Sides {
  Record a, b;
};

struct SeedsRequest {
  std::string history;  // where they are kept; see HistoryPath
  int at_most = 0;      // of each scenario; below 1: as many as are wanted
  // What a recorded command line was told; empty: it was no `trainwreck run`.
  std::function<std::optional<RecordedRun>(const std::string& command_line)> read;
  std::string program = "/proc/self/exe";
};

// Runs what each side lacks of the seeds that are `wanted` of the scenarios, and adds it to the
// side and to its run of the history. Says to `out` what it does, or why it cannot and what a
// person would have to do. Whether any seed was added. Throws Interrupted.
bool AddMissingSeeds(Sides& sides, const std::map<std::string, int>& wanted,
                     const SeedsRequest& request, std::ostream& out);

}  // namespace trainwreck
