// The state of a process that is not our child, from the operating system.
#pragma once

#include <optional>

namespace trainwreck {

struct ProcessStatus {
  char state = '?';          // as ps shows it: R runs, S sleeps, T is stopped
  bool has_children = true;  // also where the kernel does not say
};

// Empty: there is no such process any more.
std::optional<ProcessStatus> ReadProcess(int pid);

// Seconds of processor time that its living threads have had, or waited for while they were ready
// to run (/proc/PID/task/TID/schedstat). On a busy machine a process gets less than it needs; the
// demand shows what it needs. Empty: there is no such process any more, or the kernel does not say.
std::optional<double> ReadProcessorDemand(int pid);

}  // namespace trainwreck
