// The plan: everything that one process of a run must know. It is a JSON file, which
// TRAINWRECK_PLAN names. The rank comes from RANK, WORLD_SIZE, LOCAL_RANK and
// MASTER_ADDR/MASTER_PORT as every launcher sets them, or from the rendezvous file, which cannot
// clash.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

using Recipe = std::map<std::string, Json>;  // dotted key -> value, complete

// The condition for a fault to act. Steps are optimizer steps, counted from 0.
struct Trigger {
  std::optional<int> at;
  std::optional<int> from;
  std::optional<int> to;   // inclusive
  int every = 1;           // acts at every such step from `from` (or 0) on
  std::vector<int> ranks;  // empty: all
  std::string phase;       // empty: any
  std::optional<int> attempt;
  double probability = 1.0;  // drawn per step from the run's seed

  bool Matches(int step, int rank, const std::string& phase_name, int attempt_number,
               std::uint64_t seed) const;
};

struct PlannedFault {
  std::string id;                    // the scenario's name for it ("hot_lr")
  std::string fault;                 // "recipe.high_lr"
  std::map<std::string, Json> with;  // complete: defaults filled in
  Trigger trigger;
};

struct Plan {
  int protocol = 1;
  std::string run;  // "nan/lr-too-high/sgd/fault/3"
  std::string scenario;
  std::string point;
  std::string arm;
  std::uint64_t seed = 0;
  Recipe recipe;
  std::vector<PlannedFault> faults;  // without those of the recipe, which are in `recipe` already
  std::string phase = "train";
  int attempt = 0;           // counted up by the supervisor's restarts
  std::optional<int> until;  // this phase ends after so many optimizer steps, with a checkpoint
  bool resume = false;       // start from the newest usable checkpoint when there is one
  std::string checkpoint_dir;
  std::string rendezvous;  // a file of this attempt alone
  // Signals that the formulas mention: "loss", "update_norm{head.*}".
  std::vector<std::string> record;
};

Json ToJson(const Plan& plan);
// Throws std::runtime_error that names the offending field.
Plan PlanFromJson(const Json& json);

}  // namespace trainwreck
