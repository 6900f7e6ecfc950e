// Which device a run gets. The recipe's key `device` names a kind, or leaves it to the harness with
// "auto"; the plan that reaches the target always names one.
#pragma once

#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

struct DevicePick {
  std::string kind;     // "cpu", "cuda"; empty: the target leaves no choice
  std::string lacking;  // "device:cuda", or "device:cuda:4" when four ranks need one each
};

// Chooses the device. "auto" means the kind that the scenario requires, else the first accelerator
// with one device for each rank, else the CPU, which ranks share. `beyond`: features besides the
// target's own.
DevicePick PickDevice(const Recipe& recipe, const Requirements& needs,
                      const TargetDescription& target, const std::vector<std::string>& beyond);

// "cuda (NVIDIA H200)"; the kind alone when the target gives its devices no names.
std::string DescribeDevice(const std::string& kind, const TargetDescription& target);

}  // namespace trainwreck
