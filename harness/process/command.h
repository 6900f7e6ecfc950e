// Runs a child process and waits for it: git, a build, another trainwreck. The child ends when this
// process ends, even when this process is killed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/process/interruption.h"

namespace trainwreck {

struct CommandOptions {
  std::string folder;  // working directory; empty: the current one
  std::string log;     // file that gets stdout and stderr; empty: stdout is captured
  std::map<std::string, std::string> environment;  // added to ours without its GIT_*
  // With a log: the time after which the child and its process group are ended; 0: never.
  double limit_seconds = 0;
  bool captures_errors = false;       // without a log: `out` has stderr, too
  bool ignores_interruption = false;  // it runs to its end, also after the user's wish to end
};

struct CommandResult {
  int status = -1;  // exit status, 128 + signal when killed
  std::string out;  // captured
  double seconds = 0;
  bool timed_out = false;
};

// Runs the command. A program that is not there has status 127. Throws std::system_error when there
// can be no process, and Interrupted when the user interrupts; the child has then ended too.
CommandResult RunCommand(const std::vector<std::string>& arguments, const CommandOptions& options);

}  // namespace trainwreck
