// The words of a training command that start its ranks, before those of the program itself:
// `srun -N 2`, `mpirun -n 4`, `torchrun --nnodes=2 --nproc_per_node=8`, one of them or two.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace trainwreck {

struct LauncherWords {
  std::size_t count = 0;       // of these words; 0: nothing of them is known
  std::string launcher;        // torchrun, mpirun or srun, as in `ranks` of a target
  std::optional<int> ranks;    // all of them; empty: the words do not say
  std::size_t ranks_at = 0;    // the word whose number may be {parallel.ranks}; 0: none
  bool is_over_nodes = false;  // so that ranks need guards
  bool runs_python = false;    // torchrun calls Python itself
};

LauncherWords FindLauncher(const std::vector<std::string>& command);

}  // namespace trainwreck
