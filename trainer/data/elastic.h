// A checkpoint that one number of ranks wrote and another goes on from.
#pragma once

#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

// The state with which rank `rank` of `world_size` goes on; `saved` has the states of the ranks
// that wrote the checkpoint, by rank.
//  - What is the same on all ranks (model, optimizer, scaler, schedule, step) is taken over.
//  - "sampler.position": each rank's share of what all have drawn in the epoch.
//  - "loop.epoch_samples", "loop.epoch_id_sum": the sums are kept over all ranks.
//  - "rng.*": a rank that saved one keeps it. A new rank gets a generator of its own, seeded from
//    the one of rank `rank` modulo the number of ranks that saved, and from `rank`.
// Throws std::runtime_error where the samples drawn cannot be divided among the ranks.
StateDict Reshard(const std::vector<StateDict>& saved, int rank, int world_size);

}  // namespace trainwreck
