// Are the scenarios and the target fit to be run? Each look gives a finding, told as soon as it is
// there: a training of two steps takes a while.
//
//   CheckTarget(options, [](const Checked& checked) { Print(checked.finding); });
#pragma once

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

// Finds the target, builds and describes it, and trains two steps in each way that it offers. One
// that does not describe itself has a preflight run instead. Ends at the first thing without which
// the others cannot be seen.
void CheckTarget(const CommonOptions& options, const SayChecked& say);

// What the target can train on, and the GPU driver that it does not use.
std::vector<Finding> CheckDevices(const TargetDescription& target, bool has_driver);

// The judgement of a preflight run.
Checked CheckedPreflight(const PreflightResult& result);

}  // namespace trainwreck
