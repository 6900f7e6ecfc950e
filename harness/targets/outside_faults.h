// Faults that need nothing of the program: its environment, its files, its processes.
#pragma once

#include <functional>
#include <string>

#include "harness/protocol/plan.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {

class OutsideFaults {
 public:
  // `fire` writes the event with these fields.
  OutsideFaults(const Plan& plan, int rank, int ranks, LauncherKind launcher,
                std::function<void(Json)> fire)
      : plan_(plan), rank_(rank), ranks_(ranks), launcher_(launcher), fire_(std::move(fire)) {}

  // The faults before the program starts. Those with a result return whether there is something to
  // do, or was done.
  void DamageCheckpoints();
  bool WantsDataCopy() const;
  void DamageData(const std::string& copy);
  void ChangeEnvironment(std::map<std::string, std::string>& environment);

  // Performs, while the program runs below process `root`, every fault that is due up to `step`.
  void ActAtStep(int step, int root);

 private:
  bool ActsAtStart(const PlannedFault& fault) const;
  void DamageFiles(const PlannedFault& fault, const std::string& folder);
  void Crash(const PlannedFault& fault, int rank, int step, int root);
  void Fire(const PlannedFault& fault, Json fields);

  const Plan& plan_;
  int rank_;
  int ranks_;
  LauncherKind launcher_;
  std::function<void(Json)> fire_;
  int next_step_ = -1;  // the next step to act at; -1: none was seen
};

}  // namespace trainwreck
