// How `bisect` tests one commit: with a scenario, the margin of a formula, or any command. The
// commit is ready to run; every run has a seed of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/bisect/bisection.h"
#include "harness/bisect/lineage.h"
#include "harness/bisect/options.h"

namespace trainwreck {

struct TrialRequest {
  int commit = 0;
  std::string id;
  int first_seed = 0;
  int seeds = 1;
  bool control_only = false;  // no other arm matters to the question
  RunPlace place;
  std::string folder;  // for outputs and logs
};

class Trial {
 public:
  virtual ~Trial() = default;
  // The question as JSON. Two bisections with the same question share their log.
  virtual Json Question() const = 0;
  virtual int SeedsAtOnce() const { return 1; }
  // The results, in the order of their seeds. Throws UsageError, Interrupted, TestAborted.
  virtual std::vector<SeedResult> Run(const TrialRequest& request) = 0;
};

// Throws UsageError for a command line that names no test, or two.
std::unique_ptr<Trial> MakeTrial(const BisectOptions& options, const TargetPlace& target);

}  // namespace trainwreck
