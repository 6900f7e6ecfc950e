// ZeRO, stage 1 (Rajbhandari et al. 2020): the state of the optimizer is divided among the ranks.
// A rank keeps the state of the elements that it owns alone (division.h), updates them, and hands
// them to the others.
#pragma once

#include <memory>

#include "trainer/optimizers/division.h"
#include "trainer/optimizers/master_weights.h"
#include "trainer/parts.h"

namespace trainwreck {

// An optimizer around the one that `make` makes for this rank's parts of the parameters. The
// gradients of parameters must be the same on all ranks; a part whose parameter has none is updated
// by its own gradient, if any. All ranks must make the same steps; Step() is a collective. The
// state is that of the parts: entries of the parameters' names, of other sizes on each rank.
// `division` and `communicator` must outlive it; without a communicator nothing is handed out.
std::unique_ptr<Optimizer> WithShardedState(const Division& division, Communicator* communicator,
                                            const MakeOptimizer& make);

}  // namespace trainwreck
