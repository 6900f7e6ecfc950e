// Runs combinations, checks the rules after each, and makes failing ones small.
//
//   Swarm swarm(session, pool, options);
//   for (const SwarmRecord& record : swarm.Check({0, 1, 2})) { ... }
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/launch/launcher.h"
#include "harness/session/session.h"
#include "harness/swarm/combination.h"
#include "harness/swarm/rules.h"

namespace trainwreck {

struct SwarmOptions {
  std::uint64_t seed = 0;
  int cores = 0;
  double budget_s = 60;      // of one run
  int most_reductions = 60;  // runs that make one failing combination small
  IngredientSet with;        // only these ingredients; empty: all
  Changes overrides;
  std::string output;  // runs/ is made in it
};

struct SwarmRecord {
  Combination drawn;
  IngredientSet with;  // after the reduction, where there was one
  Changes overrides;   // that make it smaller still
  std::string end;     // as of RunEnd, or "refused"
  int restarts = 0;
  std::set<std::string> fired;    // names of faults
  std::vector<std::string> idle;  // names of faults that were due, and do not fire alone either
  bool is_compared = false;       // with the uninterrupted run
  bool repeats = true;            // a second run had the same finding
  double wall_seconds = 0;
  std::vector<BrokenRule> findings;
};

class Swarm {
 public:
  Swarm(const Session& session, const SwarmPool& pool, SwarmOptions options);

  // The records of these combinations, in their order; nothing where the user interrupted.
  std::optional<std::vector<SwarmRecord>> Check(const std::vector<int>& numbers);

 private:
  struct Trial {
    Combination drawn;
    IngredientSet with;
    Changes overrides;
  };
  std::vector<SwarmRecord> Try(const std::vector<Trial>& trials);
  void FindLostFaults(const std::vector<Trial>& trials, std::vector<SwarmRecord>& records);
  bool StillFails(const Trial& trial, const std::string& rule);
  void MakeSmall(SwarmRecord& record);
  std::vector<RunResult> RunAll(std::vector<Run>& runs);
  LeftBehind LookAround(const RunResult& result, const std::vector<Run>& runs) const;

  const Session& session_;
  const SwarmPool& pool_;
  SwarmOptions options_;
  std::string runs_folder_, temporary_;
  std::vector<std::string> record_;  // signals
  Launcher launcher_;
  int made_ = 0;
  std::vector<LeftBehind> left_;                  // of the runs of the last RunAll
  std::vector<std::vector<std::string>> silent_;  // ids, of the trials of the last Try
};

// The line that repeats a combination.
std::string LineOf(const SwarmRecord& record);
Json ToJson(const SwarmRecord& record);

}  // namespace trainwreck
