// The ranks of a program that are started by a launcher of its field (`trainwreck launch-ranks`).
#pragma once

#include <string>
#include <vector>

#include "harness/targets/target_spec.h"

namespace trainwreck {

// A program of level 1 that writes its own trace, with a command line that needs no placeholder.
// `arguments`: the launcher (torchrun, mpirun or srun), the number of ranks, and the program's
// command. Throws std::runtime_error where there is no such launcher.
TargetSpec LaunchedSpec(const std::vector<std::string>& arguments);

}  // namespace trainwreck
