// Whether the ranks of a data-parallel run still hold the same parameters, and making them equal
// again. Data parallelism keeps replicas in step by giving them equal gradients; nothing notices
// when one becomes different (a flipped bit, a missing reduction), and the run then trains several
// models at once.
//
// All functions are collective: every rank calls them at the same place.
#pragma once

#include <cstdint>
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

// The digests of the tensors after each step since the last comparison, 8 bytes per step and
// tensor, so that a comparison every N steps can still say at which of them the ranks went apart.
class KeptDigests {
 public:
  struct Apart {
    int step = 0;  // the first after which the ranks differ
    Desync desync;
  };

  void Keep(int step, const NamedTensors& tensors);
  void Forget() { kept_.clear(); }
  // Compares what is kept: one all-reduce of 8 bytes per rank and step, and one of 8 bytes per rank
  // and tensor for the step that it finds. All steps are looked at, since ranks that went apart may
  // have come together again. Empty: the ranks were equal after all of them.
  std::optional<Apart> FirstApart(Communicator& communicator, const NamedTensors& tensors) const;

 private:
  struct Step {
    int step;
    std::vector<std::int64_t> digests;  // of the tensors
  };
  std::vector<Step> kept_;
};

// The result of CompareReplicas for a table of digests [rank][tensor].
std::optional<Desync> FindDesync(const std::vector<std::vector<std::int64_t>>& digests,
                                 const NamedTensors& tensors);

// Replaces every tensor of `state` by that of rank `root`, in place. All ranks need the same
// entries.
void BroadcastState(Communicator& communicator, const StateDict& state, int root);

}  // namespace trainwreck
