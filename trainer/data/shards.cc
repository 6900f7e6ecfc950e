#include "trainer/data/shards.h"

#include <stdexcept>
#include <string>

#include "trainer/devices/rng.h"

namespace trainwreck {

EqualShards::EqualShards(std::int64_t size, int world_size, Split split)
    : per_rank_(size / world_size), world_size_(world_size), split_(split) {
  if (per_rank_ < 1) {
    throw std::invalid_argument(std::to_string(size) + " samples are too few for " +
                                std::to_string(world_size) + " ranks");
  }
}

std::vector<std::int64_t> EqualShards::IdsOf(int rank, std::int64_t) const {
  std::vector<std::int64_t> ids(per_rank_);
  for (std::int64_t i = 0; i < per_rank_; ++i) {
    ids[i] = split_ == Split::kStrided ? i * world_size_ + rank : rank * per_rank_ + i;
  }
  return ids;
}

DealtShards::DealtShards(std::int64_t size, int world_size, std::uint64_t seed, bool shuffle)
    : places_(size, world_size), size_(size), seed_(seed), shuffle_(shuffle) {}

std::vector<std::int64_t> DealtShards::IdsOf(int rank, std::int64_t epoch) const {
  std::vector<std::int64_t> ids = places_.IdsOf(rank, epoch);
  if (!shuffle_) return ids;
  const std::vector<std::int64_t> order = Permutation(seed_, epoch, size_);
  for (std::int64_t& id : ids) id = order[id];
  return ids;
}

}  // namespace trainwreck
