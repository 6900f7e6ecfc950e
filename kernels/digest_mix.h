// The arithmetic of digest.h, for all its implementations.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/tensor.h"

namespace trainwreck::kernels {

inline constexpr std::uint64_t kDigestStep = 0x9e3779b97f4a7c15ull;  // G, odd: 2^64 / golden ratio
inline constexpr std::uint64_t kDigestMultiplier = 0xd6e8feb86659fd93ull;  // odd

TRAINWRECK_HOST_DEVICE inline std::uint64_t DigestMix(std::uint64_t x) {
  x ^= x >> 32;
  x *= kDigestMultiplier;
  x ^= x >> 32;
  x *= kDigestMultiplier;
  return x ^ (x >> 32);
}

TRAINWRECK_HOST_DEVICE inline std::uint64_t DigestTerm(std::uint64_t word, std::uint64_t position) {
  return DigestMix(word + position * kDigestStep);
}

TRAINWRECK_HOST_DEVICE inline std::uint64_t DigestEnd(std::uint64_t terms, std::int64_t bytes,
                                                      DType dtype) {
  const std::uint64_t header =
      static_cast<std::uint64_t>(bytes) * kDigestStep + static_cast<std::uint64_t>(dtype) + 1;
  return DigestMix(terms + DigestMix(header));
}

// The sum of the terms of `words` whole words; `first` is the position of the first word.
using DigestFunction = std::uint64_t (*)(const void* data, std::int64_t words, std::uint64_t first);
DigestFunction PortableDigest();
DigestFunction Avx2Digest();
DigestFunction Avx512Digest();

}  // namespace trainwreck::kernels
