#include "trainer/devices/rng.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "harness/protocol/digest.h"

namespace trainwreck {
namespace {

constexpr char kTorchRngEntry[] = "rng.torch";

}  // namespace

std::uint64_t SplitMix64::Next() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

std::uint64_t SplitMix64::Below(std::uint64_t bound) {
  // Lemire 2019, "Fast random integer generation in an interval": the high word of a product, with
  // the few low words rejected that would make some results likelier.
  unsigned __int128 product = static_cast<unsigned __int128>(Next()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = -bound % bound;
    while (static_cast<std::uint64_t>(product) < threshold) {
      product = static_cast<unsigned __int128>(Next()) * bound;
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double SplitMix64::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t stream) {
  // Two rounds, so that (1, 2) and (2, 1) or neighbouring seeds share nothing.
  return SplitMix64(SplitMix64(seed).Next() ^ (stream * 0xd1342543de82ef95ULL)).Next();
}

std::vector<std::int64_t> Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t n) {
  SplitMix64 random(MixSeed(seed, static_cast<std::uint64_t>(epoch)));
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
  return order;
}

void SaveTorchRng(StateDict& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  state[kTorchRngEntry] = generator.get_state();
}

void LoadTorchRng(const StateDict& state) {
  const auto entry = state.find(kTorchRngEntry);
  if (entry == state.end()) return;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard<std::mutex> lock(generator.mutex());
  try {
    generator.set_state(entry->second);
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("no state of a CPU generator: ") + error.what());
  }
}

void SeedFrom(std::uint64_t stream, StateDict& state) {
  for (auto& [name, value] : state) {
    if (!name.starts_with("rng.")) continue;
    const auto* bytes = static_cast<const char*>(value.const_data_ptr());
    const std::uint64_t seed = MixSeed(Digest(std::string_view(bytes, value.nbytes())), stream);
    if (name == kTorchRngEntry) {
      at::Generator generator = at::detail::createCPUGenerator(seed);
      value = generator.get_state();
    } else {  // of a GPU: the seed and the offset of a Philox generator
      value = value.clone();
      value.zero_();
      std::memcpy(value.mutable_data_ptr(), &seed, std::min(sizeof seed, value.nbytes()));
    }
  }
}

}  // namespace trainwreck
