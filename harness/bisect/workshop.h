// Checks out and builds commits in one worktree, always at the same path, so that builds are
// incremental and the same source gives the same binary. The outputs of a build are kept under the
// digest of its tree.
#pragma once

#include <string>
#include <vector>

#include "harness/bisect/commit.h"
#include "harness/bisect/repository.h"

namespace trainwreck {

struct WorkshopOptions {
  std::string folder;                  // for the worktree, the cache and the logs of builds
  std::string build;                   // shell command; empty: nothing is built
  std::string target;                  // path in the worktree; empty: not known
  std::vector<std::string> artifacts;  // paths in the worktree; empty: see Workshop
  std::string declaration;         // a file that says what the target is, from the commit or its
                                   // build; empty: none is needed
  double build_limit_seconds = 0;  // 0: none
};

// Prepares commits. Without --artifact, the artifacts of a built binary are the target and the
// libraries of the worktree that it loads. A script may read any file, so two commits have the same
// program only where their whole trees are the same.
class Workshop {
 public:
  Workshop(const Repository& repository, WorkshopOptions options);

  // Checks out and builds the commit; afterwards the worktree holds it if `ok`. Throws Interrupted.
  Built Prepare(const Commit& commit);
  // Whether Prepare would have nothing to build.
  bool IsReady(const Commit& commit) const;
  std::string worktree() const { return options_.folder + "/worktree"; }
  void RemoveWorktree();

 private:
  std::string CacheFolder(const Commit& commit) const;
  std::vector<std::string> FindArtifacts() const;
  bool Restore(const Commit& commit, Built& built) const;
  void Keep(const Commit& commit, const std::vector<std::string>& artifacts,
            const Built& built) const;

  const Repository& repository_;
  WorkshopOptions options_;
  std::string current_;  // commit that lies built in the worktree
};

}  // namespace trainwreck
