// The Git operations of bisect: the commits between two revisions, and a worktree of its own. The
// user's checkout, index, stashes and hooks are never touched.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "harness/bisect/commit.h"

namespace trainwreck {

// A revision that does not exist, no repository here, ...: errors that the user can correct.
struct RepositoryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Which commits between the ends count.
struct Walk {
  bool first_parent = false;       // at a merge, follow the branch that it was made on alone
  std::vector<std::string> paths;  // only commits that change one of these; empty: all
};

class Repository {
 public:
  // Opens the repository that `folder` lies in.
  explicit Repository(const std::string& folder);

  const std::string& root() const { return root_; }
  std::string Resolve(const std::string& revision, const std::string& option) const;  // a commit
  // When a good end is no ancestor of the bad one, their merge base takes its place, as both sides
  // begin there. Of several good ends, the one with the longest history is the first of the list;
  // the list has no ancestor of any good end. With paths, the last commit that changes one of them
  // takes the place of the bad end.
  CommitList Between(const std::vector<std::string>& goods, const std::string& bad,
                     const Walk& walk = {}) const;
  // The commits of a revision or of a range, as v1..v2.
  std::vector<std::string> Listed(const std::string& revisions, const std::string& option) const;

  // Makes a worktree at `folder`, at `commit`, or moves the existing one to it. Files of a build
  // that Git ignores stay.
  void CheckOut(const std::string& folder, const std::string& commit) const;
  // Fetches the submodules of the worktree's commit, and their submodules. False when one cannot be
  // fetched; `log` gets the output of git.
  bool UpdateSubmodules(const std::string& folder, const std::string& log) const;
  void RemoveWorktree(const std::string& folder) const;

  // "1a2b3c4 the subject"
  std::string Describe(const std::string& commit) const;
  std::string Subject(const std::string& commit) const;
  std::string DiffSummary(const std::string& commit) const;  // against its first parent

 private:
  std::string StartOf(const std::string& good, const std::string& bad) const;
  std::string Git(const std::vector<std::string>& arguments, const std::string& folder = "") const;

  std::string root_;
};

}  // namespace trainwreck
