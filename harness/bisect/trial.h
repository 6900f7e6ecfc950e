// How `bisect` tests one commit: with a scenario, the margin of a formula, or any command. The
// commit lies in the worktree, built; every run has a seed of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/bisect/bisection.h"
#include "harness/bisect/options.h"
#include "harness/bisect/repository.h"

namespace trainwreck {

// Where the target lies in a commit's worktree. Both are empty when all commits use the same
// target, and for a command.
struct TargetPlace {
  std::string program;      // a program that the repository has or builds
  std::string declaration;  // or the trainwreck.yaml that declares a target
};

struct TrialRequest {
  int commit = 0;
  std::string id;
  int first_seed = 0;
  int seeds = 1;
  bool control_only = false;  // no other arm matters to the question
  std::string worktree;
  std::string folder;  // for outputs and logs
};

// A command ended with 128 or above: the bisection ends here.
struct TestAborted {
  std::string why;
};

class Trial {
 public:
  virtual ~Trial() = default;
  virtual TargetPlace target() const { return {}; }
  // The question as JSON. Two bisections with the same question share their log.
  virtual Json Question() const = 0;
  virtual int SeedsAtOnce() const { return 1; }
  // The results, in the order of their seeds. Throws UsageError, Interrupted, TestAborted.
  virtual std::vector<SeedResult> Run(const TrialRequest& request) = 0;
};

// Throws UsageError for a command line that names no test, or two.
std::unique_ptr<Trial> MakeTrial(const BisectOptions& options, const Repository& repository);

}  // namespace trainwreck
