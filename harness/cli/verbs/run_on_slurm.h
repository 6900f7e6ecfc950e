// `run --on slurm`.
#pragma once

#include "harness/cli/verbs/run.h"

namespace trainwreck {

// Throws UsageError for options that do not go together.
void CheckSlurmOptions(const RunOptions& run);

// Runs the selected cases, `cases` in number, as a job array, and merges its shards. Returns the
// exit status.
int RunOnSlurm(const RunOptions& run, int cases);

}  // namespace trainwreck
