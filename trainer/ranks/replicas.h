// Whether the ranks of a data-parallel run still hold the same parameters, and making them equal
// again. Data parallelism keeps replicas in step by giving them equal gradients; nothing notices
// when one departs (a flipped bit, a missing reduction), and the run then trains several models at
// once.
//
// All functions are collective: every rank calls them at the same place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/optimizers/optimizers.h"
#include "trainer/parts.h"

namespace trainwreck {

struct Desync {
  std::vector<int> ranks;            // that differ from the reference in some tensor, ascending
  std::vector<std::string> tensors;  // in which some rank does
  // Who is taken to be right: where more than half of the ranks agree on every tensor, these; else,
  // as always with two ranks, where nobody knows, rank 0.
  std::string reference;  // "majority" or "rank 0"
};

// Compares 64-bit digests of the tensors, in one all-reduce of 8 bytes per rank and tensor. Every
// rank gets the same answer; empty: all are equal.
std::optional<Desync> CompareReplicas(Communicator& communicator, const NamedTensors& tensors);

// What CompareReplicas finds in a table of digests [rank][tensor].
std::optional<Desync> FindDesync(const std::vector<std::vector<std::int64_t>>& digests,
                                 const NamedTensors& tensors);

// Every tensor of `state` becomes rank `root`'s, in place. All ranks need the same entries.
void BroadcastState(Communicator& communicator, const StateDict& state, int root);

}  // namespace trainwreck
