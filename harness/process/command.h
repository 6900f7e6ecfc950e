// A child process, waited for: git, a build, another trainwreck. It ends when this process does,
// also when that is killed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/process/interruption.h"

namespace trainwreck {

struct CommandOptions {
  std::string folder;  // to run in; empty: this one
  std::string log;     // file that gets stdout and stderr; empty: stdout is captured
  std::map<std::string, std::string> environment;  // beside ours; GIT_* of ours are left out
  // With a log: after so long the child and all that it started in its process group are ended;
  // 0: never.
  double limit_seconds = 0;
};

struct CommandResult {
  int status = -1;  // exit status, 128 + signal when killed
  std::string out;  // captured
  double seconds = 0;
  bool timed_out = false;
};

// Throws std::system_error when it cannot be started, Interrupted when the user wants us to end:
// the child was told so, and has ended.
CommandResult RunCommand(const std::vector<std::string>& arguments, const CommandOptions& options);

}  // namespace trainwreck
