// Whether the ranks of a data-parallel run still hold the same parameters, and making them equal
// again. Data parallelism keeps replicas in step by giving them equal gradients; nothing notices
// when one becomes different (a flipped bit, a missing reduction), and the run then trains several
// models at once.
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
  std::vector<int> ranks;            // ranks that differ from the reference, ascending
  std::vector<std::string> tensors;  // in which some rank differs
  // The ranks that count as correct: the majority, where more than half of the ranks agree on every
  // tensor; else rank 0, which is always so with two ranks.
  std::string reference;  // "majority" or "rank 0"
};

// Compares 64-bit digests of the tensors, in one all-reduce of 8 bytes per rank and tensor. Every
// rank gets the same answer; empty: all are equal.
std::optional<Desync> CompareReplicas(Communicator& communicator, const NamedTensors& tensors);

// The result of CompareReplicas for a table of digests [rank][tensor].
std::optional<Desync> FindDesync(const std::vector<std::vector<std::int64_t>>& digests,
                                 const NamedTensors& tensors);

// Replaces every tensor of `state` by that of rank `root`, in place. All ranks need the same
// entries.
void BroadcastState(Communicator& communicator, const StateDict& state, int root);

}  // namespace trainwreck
