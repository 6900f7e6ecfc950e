// Checks whether the scenarios and the target can be run. Each check gives a finding, which is
// reported at once because a training of two steps takes a while.
//
//   CheckTarget(options, [](const Checked& checked) { Print(checked.finding); });
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/session/machine.h"
#include "harness/session/options.h"
#include "harness/session/preflight.h"

namespace trainwreck {

struct Checked {
  Finding finding;
  std::vector<PreflightFinding> details;  // what a preflight found
};
using SayChecked = std::function<void(const Checked& checked)>;

Finding CheckScenarios(const CommonOptions& options);

// Finds the target, builds and describes it, and trains two steps in each way that it offers. A
// target that does not describe itself has a preflight run instead. Ends at the first failure that
// makes the remaining checks impossible.
void CheckTarget(const CommonOptions& options, const SayChecked& say);

// The devices that the target can train on, what other programs use of each (bytes), and a GPU
// driver that the target does not use.
std::vector<Finding> CheckDevices(const TargetDescription& target,
                                  const std::vector<std::int64_t>& used, bool has_driver);

// The result of a preflight run as a finding.
Checked CheckedPreflight(const PreflightResult& result);

}  // namespace trainwreck
