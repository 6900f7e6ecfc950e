// `run --on slurm`.
#pragma once

#include <string>

#include "harness/cli/verbs/run.h"

namespace trainwreck {

// Throws UsageError for options that do not go together.
void CheckSlurmOptions(const RunOptions& run);

// Runs the selected cases, `cases` in number, as a job array, and merges its shards. They are split
// by what the history says that cases take with this target, unless --shard-costs says it. Returns
// the exit status.
int RunOnSlurm(const RunOptions& run, int cases, const std::string& target);

}  // namespace trainwreck
