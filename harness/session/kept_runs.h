// Runs that an earlier invocation kept, as results of the runs that a scenario asks for now.
#pragma once

#include <optional>
#include <string>

#include "harness/launch/launcher.h"
#include "harness/plan/run.h"

namespace trainwreck {

struct KeptRun {
  std::optional<RunResult> result;
  std::string why_not;  // "the run was not kept", "optimizer.lr was 0.1, it is 0.2 now"
};

// The run under the invocation's folder that is `wanted` in all that a training depends on. Never
// throws on what it finds there; problems of the trace go to stderr.
KeptRun FindKeptRun(const std::string& output_folder, const Run& wanted);

}  // namespace trainwreck
