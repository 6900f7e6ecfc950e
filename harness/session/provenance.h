// Where an invocation comes from: the commit of the project that it was called in, and the machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainwreck {

struct CommitState {
  std::string hash;       // empty: not in a Git repository, or there is no git
  bool is_dirty = false;  // files that Git tracks have changes that are not committed
};
CommitState CurrentCommit();

// The full hash of what a person calls a revision ("main", "v1.2", "HEAD~3"); empty: there is none.
std::string ResolveRevision(const std::string& revision);

// "cpu": its model; "driver": of the GPUs, when there are any.
std::map<std::string, std::string> MachineEnvironment();

}  // namespace trainwreck
