// The signals and events of the reference trainer, as `--describe` lists them. telemetry.cc records
// the signals.
#pragma once

#include <string>
#include <vector>

#include "harness/protocol/description.h"

namespace trainwreck {

inline constexpr char kTrainerVersion[] = "0.1";

std::vector<SignalInfo> TrainerSignals();
std::vector<EventInfo> TrainerEvents();

// All of it, with the recipe's keys; `faults` come from the injectors that are linked in.
TargetDescription DescribeTrainer(std::vector<FaultInfo> faults);

}  // namespace trainwreck
