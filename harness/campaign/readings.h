// `run --arm` and `run --seed`: runs some arms and seeds alone, and shows how each check reads over
// each run. There is no verdict: a verdict needs all arms and seeds.
#pragma once

#include <string>
#include <vector>

#include "harness/launch/launcher.h"
#include "harness/plan/run.h"
#include "harness/protocol/description.h"
#include "harness/session/options.h"

namespace trainwreck {

// Empty: all of them.
struct WantedArms {
  std::vector<std::string> arms;
  std::vector<int> seeds;
};

// Throws UsageError when no case has an arm of one of these names.
void CheckArmNames(const std::vector<Case>& cases, const std::vector<std::string>& arms);

// The exit status. 0: all read as claimed, 1: some do not, 5: some are unknown, 7: a run could not
// be made. Throws UsageError when no case has such an arm or seed.
int ReadArms(const std::vector<Case>& cases, const WantedArms& wanted,
             const TargetDescription& target, const LauncherOptions& launcher);

}  // namespace trainwreck
