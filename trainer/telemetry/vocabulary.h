// What the reference trainer says of itself: `--describe`. Signals are rows of step_signals.h and
// tensor_signals.h, events of trainer/events.h.
#pragma once

#include <string>
#include <vector>

#include "harness/protocol/description.h"

namespace trainwreck {

inline constexpr char kTrainerVersion[] = "0.1";

std::vector<SignalInfo> TrainerSignals();

// All of it, with the recipe's keys; `faults` come from the injectors that are linked in.
TargetDescription DescribeTrainer(std::vector<FaultInfo> faults);

}  // namespace trainwreck
