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

}  // namespace trainwreck
