// The order in which a rank goes through its shard: a permutation seeded by (seed, epoch, rank),
// cut into batches. What happens when shards are uneven is `uneven`:
//  - kNone: each rank goes through its own shard, a last smaller batch included. Ranks with uneven
//    shards make different numbers of steps, as loops do whose author thought of even shards only.
//  - kDropLast: all ranks make as many whole batches as the shortest shard has; the rest is not
//    seen.
//  - kPad: short ranks see samples of theirs again, from the front, up to the longest shard.
//  - kJoin: short ranks go on as shadows until the longest is done, see below.
//
// The protocol of Next(), for the loop:
//  - ids: train on them.
//  - empty, and not is_shadow(): the epoch is over on this rank; do what is done between epochs,
//    draw on.
//  - empty, and is_shadow() (kJoin only): other ranks still have data; take part in this step's
//    collectives with zero gradients and zero weight, draw on.
//
// In join mode a step's mean is over the ranks that have data: sum the gradients and divide by
// their number, which the loop gets by adding up 1 (data) or 0 (shadow) over the ranks.
//
// Collectives (world size > 1): all modes but kNone agree once at the start of an epoch and after
// Load, kJoin at every Next() as well. So all ranks must draw in step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

struct SamplerOptions {
  int rank = 0;
  std::int64_t batch_size = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;
  UnevenMode uneven = UnevenMode::kNone;
  // Length bucketing: so many batches of the shuffled order are sorted by length, and the epoch's
  // batches are then shuffled. What a batch holds, and when, still follows from seed, epoch and
  // rank alone. 0: no buckets.
  std::int64_t bucket_batches = 0;
  std::function<std::int64_t(std::int64_t id)> length = {};  // of a sample, in tokens
};

class EpochSampler : public Sampler {
 public:
  // Both references must outlive the sampler. Next() throws std::runtime_error when the epoch would
  // have no batch at all (an endless loop otherwise).
  EpochSampler(const Shards& shards, Communicator& communicator, SamplerOptions options);

  std::vector<std::int64_t> Next() override;
  bool is_shadow() const override { return shadow_; }
  std::int64_t epoch() const override { return epoch_; }
  // Saves "sampler.epoch" and "sampler.position" (samples drawn in this epoch), int64 scalars.
  void Save(StateDict& state) const override;
  void Load(const StateDict& state) override;

 private:
  void BeginEpoch();
  void SortIntoBuckets();
  std::int64_t Agree(std::int64_t value, Reduction reduction);
  void EndEpoch();

  const Shards& shards_;
  Communicator& communicator_;
  SamplerOptions options_;
  std::int64_t epoch_ = 0;
  std::int64_t position_ = 0;
  bool prepared_ = false;            // order_ is that of epoch_
  std::vector<std::int64_t> order_;  // this rank's samples of the epoch, with padding and cuts
  bool shadow_ = false;
};

}  // namespace trainwreck
