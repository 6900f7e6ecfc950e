// Random numbers that are the same on every machine and with every standard library: a seed gives
// one order of the data, which does not depend on an implementation of std::shuffle. Also the state
// of LibTorch's own CPU generator as a tensor, for checkpoints.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

// SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"). Passes
// BigCrush; streams are told apart by hashing their coordinates into the seed:
// SplitMix64(MixSeed(seed, epoch)).
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  std::uint64_t Below(std::uint64_t bound);  // uniform in [0, bound), without bias; bound > 0
  double Uniform();                          // in [0, 1), 53 bits

 private:
  std::uint64_t state_;
};

std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t stream);

// A permutation of 0..n-1 (Fisher-Yates), the same for the same seed and epoch.
std::vector<std::int64_t> Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t n);

// Saves the state of the default CPU generator: a byte tensor, entry "rng.torch".
void SaveTorchRng(StateDict& state);
// Loads that state. Without the entry the generator goes on as it is. Throws std::runtime_error
// when the entry is no state.
void LoadTorchRng(const StateDict& state);
// Puts other generators in place of those in `state` ("rng.*"), each seeded from the one that is
// there and from `stream`.
void SeedFrom(std::uint64_t stream, StateDict& state);

}  // namespace trainwreck
