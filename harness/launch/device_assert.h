// Assertions of kernels on a GPU. A kernel runs beside the program that queued it, so the program
// learns of a failed assertion at a later call, and its error names that one. A run that ended so
// is made once more with CUDA_LAUNCH_BLOCKING=1: each kernel is then waited for, and the error
// comes where its cause is.
#pragma once

#include <optional>

#include "harness/launch/launcher.h"

namespace trainwreck {

// The rank that ended with the error of a device assert; none: the run ended otherwise.
std::optional<int> RankWithDeviceAssert(const RunResult& result);

// The run to make for it: in a folder below that of `run`, without restarts.
Run WithBlockingLaunches(const Run& run);

// Adds what the repetition found to the run's trace, in memory and on the disk, as the event
// device_assert, and to its detail. Throws std::system_error when the trace cannot be written.
void AddDeviceAssert(const RunResult& repeated, RunResult& result);

}  // namespace trainwreck
