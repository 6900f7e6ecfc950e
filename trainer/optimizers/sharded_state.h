// ZeRO, stage 1 (Rajbhandari et al. 2020): the state of the optimizer is divided among the ranks.
// All elements of all parameters stand in one row, in the order of the parameters, and rank r of n
// owns the r-th n-th of it. It keeps the state of these elements alone, updates them, and hands
// them to the others.
#pragma once

#include "trainer/optimizers/master_weights.h"
#include "trainer/parts.h"

namespace trainwreck {

// An optimizer around the one that `make` makes for this rank's parts of the parameters, each part
// a flat view that has its parameter's name. Gradients must be the same on all ranks, and all ranks
// must make the same steps; Step() is a collective. The state is that of the parts: entries of the
// parameters' names, of other sizes on each rank. `communicator` must outlive it.
std::unique_ptr<Optimizer> WithShardedState(NamedTensors parameters, Communicator& communicator,
                                            const MakeOptimizer& make);

}  // namespace trainwreck
