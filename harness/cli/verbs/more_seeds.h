// The seeds that a comparison lacks, run by the program that ran the others: `compare
// --more-seeds`.
#pragma once

#include <string>
#include <vector>

#include "harness/history/record.h"

namespace trainwreck {

// "nan/x", seeds [first, end) of which are to be run.
struct MissingSeeds {
  std::string scenario;
  int first = 0;
  int end = 0;
};

// What the invocation of `side` would have been with these seeds alone: its target, overrides and
// isolation. In this folder when the target here is still the one that was recorded; else in a
// worktree of the recorded commit, when it is there; `why` says why it is in neither, and then the
// answer is empty. Throws Interrupted.
std::vector<Record> RunMissingSeeds(const Record& side, const std::vector<MissingSeeds>& missing,
                                    std::string& why);

// The words of a command line as it was recorded, with its quotes resolved.
std::vector<std::string> SplitCommandLine(const std::string& line);

}  // namespace trainwreck
