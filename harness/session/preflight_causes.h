// Why a preflight run saw no signals: what the program said, which lines a pattern saw, what may
// have been meant.
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

// The cause alone where the program did not come to its first step; else one finding for each
// source whose signals are missing. `result.folder` must still be there.
std::vector<PreflightFinding> FindCauses(const TargetSpec& spec, const Run& run,
                                         const RunResult& result,
                                         const std::vector<MissingSignal>& missing);

}  // namespace trainwreck
