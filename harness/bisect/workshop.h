// Commits made ready to run: checked out and built in one worktree, always at the same path, so
// that builds are incremental and the same source gives the same binary. What a build made is kept
// by the digest of its tree.
#pragma once

#include <string>
#include <vector>

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

struct Built {
  bool ok = false;
  // Equal for two commits: they run the same program. The digest of the artifacts; the tree's id
  // where these are not known.
  std::string program;
  double seconds = 0;
  bool from_cache = false;
  std::string log;  // of the build
  std::string why;  // not `ok`: what stands in the way
};

// Without --artifact the artifacts are the target and the libraries of the worktree that it loads,
// if the target is a binary that a build made. A script may read any file, so nothing is assumed of
// it: it is the same program only where the whole tree is the same.
class Workshop {
 public:
  Workshop(const Repository& repository, WorkshopOptions options);

  // Afterwards the worktree holds the commit, built, if `ok`. Throws Interrupted.
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
