// The reasons why a preflight run saw no signals: the program's output, the lines that a pattern
// saw, and what the user may have meant.
#pragma once

#include <string>
#include <vector>

#include "harness/launch/launcher.h"
#include "harness/session/preflight.h"

namespace trainwreck {

struct MissingSignal {
  std::string name;
  bool is_required = false;  // a formula mentions it
};

// The lines of the first MiB that the run printed on `stdout` or `stderr`.
std::vector<std::string> PrintedLines(const RunResult& result, const std::string& stream);

// One finding, the cause, where the program did not reach its first step; else a finding for each
// source whose signals are missing. `result.folder` must still be there.
std::vector<PreflightFinding> FindCauses(const TargetSpec& spec, const Run& run,
                                         const RunResult& result,
                                         const std::vector<MissingSignal>& missing);

}  // namespace trainwreck
