// `trainwreck rank -- COMMAND...`: the guard of one rank, on whatever machine a launcher starts it.
//
//   srun -N 4 trainwreck rank -- python3 train.py
//
// It starts the command, performs the faults of processes that the harness orders, says how the
// rank is, keeps what it prints, and ends as the command ends. No process of the rank outlives the
// command, the guard, or the run. All that it needs is the environment that the launcher hands on,
// and the run's folder on a file system that the machines share (harness/process/rank_guards.h).
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

// Returns the command's exit code, or ends by the same signal. Without a harness, where
// TRAINWRECK_TRACE is not set, it becomes the command.
int RunRankGuard(const std::vector<std::string>& command);

}  // namespace trainwreck
