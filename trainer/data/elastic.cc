#include "trainer/data/elastic.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "trainer/devices/rng.h"

namespace trainwreck {
namespace {

// Of the ranks first, first + stride, ...; empty: one of them lacks the entry.
std::optional<double> SumOf(const std::vector<StateDict>& saved, const char* name, int first,
                            int stride) {
  double sum = 0;
  for (std::size_t rank = first; rank < saved.size(); rank += stride) {
    const auto entry = saved[rank].find(name);
    if (entry == saved[rank].end()) return std::nullopt;
    sum += entry->second.item<double>();
  }
  return sum;
}

// Each rank's part of the samples that all have drawn in the epoch.
void SharePosition(const std::vector<StateDict>& saved, int world_size, StateDict& state) {
  constexpr char kName[] = "sampler.position";
  const std::optional<double> drawn = SumOf(saved, kName, 0, 1);
  if (!drawn) {
    state.erase(kName);
    return;
  }
  const auto samples = static_cast<std::int64_t>(*drawn);
  if (samples % world_size != 0) {
    throw std::runtime_error("the " + std::to_string(samples) + " samples of this epoch that " +
                             std::to_string(saved.size()) +
                             " ranks have drawn cannot be divided among " +
                             std::to_string(world_size));
  }
  state[kName] = at::scalar_tensor(samples / world_size, at::kLong);
}

// Each rank goes on with the counts of the ranks whose place it takes; -1: nobody knows them.
void ShareCounts(const std::vector<StateDict>& saved, int rank, int world_size, StateDict& state) {
  const bool known = std::all_of(saved.begin(), saved.end(), [](const StateDict& of_rank) {
    const auto samples = of_rank.find("loop.epoch_samples");
    return samples != of_rank.end() && samples->second.item<double>() >= 0;
  });
  for (const char* name : {"loop.epoch_samples", "loop.epoch_id_sum"}) {
    if (!state.contains(name)) continue;
    const double count = SumOf(saved, name, rank, world_size).value_or(0);
    state[name] = at::scalar_tensor(known ? count : -1, at::kDouble);
  }
}

}  // namespace

StateDict Reshard(const std::vector<StateDict>& saved, int rank, int world_size) {
  const int writers = static_cast<int>(saved.size());
  StateDict state = saved.at(rank % writers);
  SharePosition(saved, world_size, state);
  ShareCounts(saved, rank, world_size, state);
  if (rank >= writers) SeedFrom(static_cast<std::uint64_t>(rank), state);
  return state;
}

}  // namespace trainwreck
