#include "trainer/data/sampler.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "trainer/devices/rng.h"

namespace trainwreck {
namespace {

constexpr char kEpochEntry[] = "sampler.epoch";
constexpr char kPositionEntry[] = "sampler.position";

at::Tensor IntScalar(std::int64_t value) { return at::scalar_tensor(value, at::kLong); }

}  // namespace

EpochSampler::EpochSampler(const Shards& shards, Communicator& communicator, SamplerOptions options)
    : shards_(shards), communicator_(communicator), options_(options) {
  if (options_.batch_size < 1) throw std::runtime_error("batch size must be at least 1");
}

std::int64_t EpochSampler::Agree(std::int64_t value, Reduction reduction) {
  if (communicator_.world_size() == 1) return value;
  at::Tensor tensor = IntScalar(value);
  communicator_.AllReduce(tensor, reduction);
  return tensor.item<std::int64_t>();
}

void EpochSampler::BeginEpoch() {
  const std::vector<std::int64_t> shard = shards_.IdsOf(options_.rank, epoch_);
  std::int64_t count = static_cast<std::int64_t>(shard.size());
  order_ = shard;
  if (options_.shuffle) {
    const auto stream = static_cast<std::uint64_t>(options_.rank);
    const auto permutation = Permutation(MixSeed(options_.seed, stream), epoch_, count);
    for (std::int64_t i = 0; i < count; ++i) order_[i] = shard[permutation[i]];
  }
  if (options_.uneven == UnevenMode::kDropLast) {
    count = Agree(count / options_.batch_size, Reduction::kMin) * options_.batch_size;
    order_.resize(count);
  } else if (options_.uneven == UnevenMode::kPad) {
    const std::int64_t longest = Agree(count, Reduction::kMax);
    if (count > 0) {
      for (std::int64_t i = count; i < longest; ++i) order_.push_back(order_[i - count]);
    }
  }
  if (options_.shuffle && options_.bucket_batches > 0) SortIntoBuckets();
  // In join mode an empty shard is fine as long as another rank has samples.
  const auto drawn = static_cast<std::int64_t>(order_.size());
  const bool joins = options_.uneven == UnevenMode::kJoin;
  if ((joins ? Agree(drawn, Reduction::kMax) : drawn) == 0) {
    throw std::runtime_error("epoch " + std::to_string(epoch_) + " of rank " +
                             std::to_string(options_.rank) + " has no batch: its shard has " +
                             std::to_string(shard.size()) + " samples, batches have " +
                             std::to_string(options_.batch_size));
  }
  prepared_ = true;
}

// The samples that fill no batch stay at the end.
void EpochSampler::SortIntoBuckets() {
  const std::int64_t batches = static_cast<std::int64_t>(order_.size()) / options_.batch_size;
  const auto at = [&](std::int64_t batch) {
    return order_.begin() + std::min(batch, batches) * options_.batch_size;
  };
  for (std::int64_t first = 0; first < batches; first += options_.bucket_batches) {
    std::stable_sort(
        at(first), at(first + options_.bucket_batches),
        [&](std::int64_t a, std::int64_t b) { return options_.length(a) < options_.length(b); });
  }
  const std::vector<std::int64_t> sorted = order_;
  const auto stream = static_cast<std::uint64_t>(options_.rank);
  const auto places = Permutation(MixSeed(options_.seed, stream) + 1, epoch_, batches);
  for (std::int64_t i = 0; i < batches; ++i) {
    const auto from = sorted.begin() + places[i] * options_.batch_size;
    std::copy(from, from + options_.batch_size, at(i));
  }
}

std::vector<std::int64_t> EpochSampler::Next() {
  if (!prepared_) BeginEpoch();
  const auto count = static_cast<std::int64_t>(order_.size());
  const std::int64_t begin = std::min(position_, count);
  const std::int64_t end = std::min(begin + options_.batch_size, count);
  const bool has_batch = begin < end;
  shadow_ = false;
  if (options_.uneven == UnevenMode::kJoin) {
    const bool any_has_batch = Agree(has_batch ? 1 : 0, Reduction::kMax) > 0;
    shadow_ = any_has_batch && !has_batch;
  }
  if (has_batch) {
    position_ = end;
    return {order_.begin() + begin, order_.begin() + end};
  }
  if (!shadow_) EndEpoch();
  return {};
}

void EpochSampler::EndEpoch() {
  ++epoch_;
  position_ = 0;
  prepared_ = false;
}

void EpochSampler::Save(StateDict& state) const {
  state[kEpochEntry] = IntScalar(epoch_);
  state[kPositionEntry] = IntScalar(position_);
}

void EpochSampler::Load(const StateDict& state) {
  if (auto entry = state.find(kEpochEntry); entry != state.end()) {
    epoch_ = entry->second.item<std::int64_t>();
  }
  if (auto entry = state.find(kPositionEntry); entry != state.end()) {
    position_ = entry->second.item<std::int64_t>();
  }
  prepared_ = false;
  shadow_ = false;
}

}  // namespace trainwreck
