// A rank's number among those of its machine, which says which of the machine's GPUs is its own.
#pragma once

#include "trainer/recipe/recipe.h"

namespace trainwreck {

struct LocalPlace {
  int rank = 0;        // among the ranks of this machine
  int world_size = 1;  // of these
  bool operator==(const LocalPlace&) const = default;
};

// As the launcher says it in the environment: LOCAL_RANK and LOCAL_WORLD_SIZE (the harness,
// torchrun), OMPI_COMM_WORLD_LOCAL_RANK and _SIZE, or MPI_LOCALRANKID and MPI_LOCALNRANKS (mpirun),
// SLURM_LOCALID, and SLURM_STEP_TASKS_PER_NODE of node SLURM_NODEID (srun). One that says nothing
// has all ranks on one machine. Throws RecipeError for what is no rank on a machine.
LocalPlace LocalPlaceOf(RankLauncher launcher, int rank, int world_size);

}  // namespace trainwreck
