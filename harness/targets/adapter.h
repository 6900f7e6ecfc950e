// Stands between the harness and a program that does not speak its protocol: `trainwreck adapt FILE
// NAME` is a target like any other, to be described, started and killed. It starts the program,
// turns its signals into the trace while it runs, performs faults from outside, and ends as the
// program does.
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

// `describe`: prints the target's description instead. Returns the program's exit code, or ends by
// the same signal as the program.
int RunAdapter(const std::string& file, const std::string& name, bool describe);

// `trainwreck launch-ranks LAUNCHER RANKS COMMAND...`: starts a target of level 2 by torchrun,
// mpirun or srun, watches its ranks, and writes into rank 0's trace how they end. The plan's faults
// are the target's own affair. Ends as the launcher ends.
int RunLaunchedRanks(const std::vector<std::string>& arguments);

}  // namespace trainwreck
