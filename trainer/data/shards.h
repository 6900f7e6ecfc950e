// The samples of each rank: equal shares of the data set, the same in every epoch. The sampler
// chooses the order within a shard.
#pragma once

#include "trainer/parts.h"

namespace trainwreck {

// kStrided: rank r has r, r + world_size, r + 2 * world_size, ... kContiguous: rank r has the r-th
// block.
enum class Split { kStrided, kContiguous };

// Every rank gets size / world_size samples; the remainder is not used, so that all ranks have the
// same number of batches. Throws std::invalid_argument when there is less than one sample per rank.
class EqualShards : public Shards {
 public:
  EqualShards(std::int64_t size, int world_size, Split split = Split::kStrided);
  std::vector<std::int64_t> IdsOf(int rank, std::int64_t epoch) const override;

 private:
  std::int64_t per_rank_;
  int world_size_;
  Split split_;
};

// One order of all samples in each epoch, dealt out to the ranks one by one, as PyTorch's
// DistributedSampler does: the first n * world_size samples of that order are what n samples of
// each rank are, whatever the number of ranks. The last size % world_size are left out. Throws as
// EqualShards does.
class DealtShards : public Shards {
 public:
  // The order is that of the ids without `shuffle`.
  DealtShards(std::int64_t size, int world_size, std::uint64_t seed, bool shuffle);
  std::vector<std::int64_t> IdsOf(int rank, std::int64_t epoch) const override;

 private:
  EqualShards places_;  // in the order
  std::int64_t size_;
  std::uint64_t seed_;
  bool shuffle_;
};

}  // namespace trainwreck
