// What /proc tells of processes, for the spawn server. Descendants and ProcessesWith of spawn.h are
// made of it, too.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace trainwreck {

struct ProcessInfo {
  pid_t parent = 0;
  pid_t group = 0;
};

std::optional<ProcessInfo> ReadProcessInfo(pid_t pid);  // empty: it has ended
std::string CommandOf(pid_t pid);  // its command line, of 200 characters at most

}  // namespace trainwreck
