// What a bisection goes through: the states of a training stack, one after the other, each of which
// can be made ready to run. Commits of a repository (commits.h), or releases of a Python package
// (releases.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/bisect/commit.h"
#include "harness/bisect/options.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// Where the target lies in a commit's worktree. Both are empty when all commits use the same
// target, and for a command.
struct TargetPlace {
  std::string program;      // a program that the repository has or builds
  std::string declaration;  // or the trainwreck.yaml that declares a target
};

// How a run reaches the commit that was made ready last.
struct RunPlace {
  std::string folder;                              // to run in
  std::map<std::string, std::string> environment;  // added to ours
};

// Something failed that no commit caused. The same command goes on from here.
struct BisectionStopped {
  std::string why;
};

// A commit stands for any state of the line, also for a release.
class Lineage {
 public:
  virtual ~Lineage() = default;
  virtual std::string noun() const = 0;  // "commit", "release"
  // From new to old: the good end is the newer one, and what is sought is where it was repaired.
  virtual bool is_backwards() const { return false; }
  virtual std::string root() const = 0;  // .trainwreck/bisect lies there
  virtual TargetPlace target() const { return {}; }
  virtual const CommitList& commits() const = 0;
  // What is searched, as JSON: two bisections with the same question share their log.
  virtual Json Question() const = 0;
  virtual std::string Note() const { return ""; }  // for people, before it begins

  // The ids of one commit or of a range, as v1..v2. Throws where there is none, naming `option`.
  virtual std::vector<std::string> Listed(const std::string& text,
                                          const std::string& option) const = 0;
  virtual std::string Describe(const std::string& id) const = 0;  // "1a2b3c4 the subject"
  virtual std::string Subject(const std::string& id) const = 0;
  // What the culprit changed, or where to see that; for people.
  virtual std::string Difference(const std::string& before, const std::string& culprit) const = 0;

  // `folder` belongs to this bisection alone from now on, until Close.
  virtual void Open(const std::string& folder) = 0;
  // Whether Prepare would have nothing to build.
  virtual bool IsReady(const Commit& commit) const = 0;
  // Makes the commit ready to run. Throws Interrupted, BisectionStopped.
  virtual Built Prepare(const Commit& commit) = 0;
  virtual RunPlace PlaceOf(const Commit& commit) const = 0;
  virtual void Close() {}
};

// The one that the options name. Throws UsageError, and RepositoryError.
std::unique_ptr<Lineage> MakeLineage(const BisectOptions& options);

}  // namespace trainwreck
