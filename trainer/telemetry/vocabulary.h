// The reference trainer's description of itself: `--describe`. Signals are rows of step_signals.h
// and tensor_signals.h, events of trainer/events.h.
#pragma once

#include <string>
#include <vector>

#include "harness/protocol/description.h"

namespace trainwreck {

inline constexpr char kTrainerVersion[] = "0.1";

std::vector<SignalInfo> TrainerSignals();

// The whole description, with the recipe's keys; `faults` come from the linked-in injectors.
TargetDescription DescribeTrainer(std::vector<FaultInfo> faults);

}  // namespace trainwreck
