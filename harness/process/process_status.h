// The state of a process that is not our child, from the operating system.
#pragma once

#include <cstdint>
#include <optional>

namespace trainwreck {

struct ProcessStatus {
  char state = '?';            // as ps shows it: R runs, S sleeps, T is stopped
  std::int64_t cpu_ticks = 0;  // user and system time of all its threads, in clock ticks
  bool has_children = true;    // also where the kernel does not say
};

// Empty: there is no such process any more.
std::optional<ProcessStatus> ReadProcess(int pid);

}  // namespace trainwreck
