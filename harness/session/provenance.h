// The origin of an invocation: the commit of the surrounding project, and the machine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainwreck {

struct CommitState {
  std::string hash;       // empty: not in a Git repository, or there is no git
  bool is_dirty = false;  // files that Git tracks have uncommitted changes
};
CommitState CurrentCommit();

// The full hash of a revision ("main", "v1.2", "HEAD~3"); empty: there is none.
std::string ResolveRevision(const std::string& revision);

// The machine's environment. "cpu": the processor's model; "driver": the GPUs' driver, if there are
// any.
std::map<std::string, std::string> MachineEnvironment();

}  // namespace trainwreck
