// A commit as the search sees it, and what becomes of it when it is made ready to run.
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

struct Commit {
  std::string id;
  std::string tree;
  std::vector<int> parents;  // positions in the list; 0: not a candidate
};

// The good end, then all commits that the bad end has and the good one lacks, ancestors first; the
// last one is the bad end.
using CommitList = std::vector<Commit>;

struct Built {
  bool ok = false;
  // The digest of the artifacts, or the tree's id where these are not known. Two commits with equal
  // values run the same program.
  std::string program;
  double seconds = 0;
  bool from_cache = false;
  std::string log;  // of the build
  std::string why;  // not `ok`: the reason
};

}  // namespace trainwreck
