// The order of the sums that tensor_stats.h defines, for all its implementations.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/tensor_stats.h"

namespace trainwreck::kernels {

inline constexpr int kLanes = 16;
inline constexpr int kStrip = 1024;  // elements
inline constexpr int kStripsPerChunk = 8;
inline constexpr int kChunk = kStrip * kStripsPerChunk;  // elements
inline constexpr int kSlots = 256;

inline constexpr std::int32_t kInfinityBits = 0x7f800000u;  // as float32; above it: NaN

// The sums of one strip, or of several strips after adding.
struct StripSums {
  double sum = 0;
  double squares = 0;
  std::uint32_t max_bits = 0;  // of the finite magnitudes, as float32: ordered as the values are
  std::int32_t zeros = 0;
  std::int32_t nonfinite = 0;

  TRAINWRECK_HOST_DEVICE void Add(const StripSums& other) {
    sum += other.sum;
    squares += other.squares;
    max_bits = max_bits > other.max_bits ? max_bits : other.max_bits;
    zeros += other.zeros;
    nonfinite += other.nonfinite;
  }
};

// Adds `count` values by halves, `count` a power of two.
template <typename T>
TRAINWRECK_HOST_DEVICE inline void AddByHalves(T* values, int count) {
  for (int half = count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) values[i] += values[i + half];
  }
}

inline constexpr std::int64_t Chunks(std::int64_t count) { return (count + kChunk - 1) / kChunk; }

// A strip of `count` <= kStrip elements.
using StripFunction = StripSums (*)(const void* data, int count);

// The functions by instruction set, in cpu.h's order; null where the compiler does not support one.
struct StripFunctions {
  StripFunction float32 = nullptr;
  StripFunction float16 = nullptr;
  StripFunction bfloat16 = nullptr;
};
StripFunctions PortableStrips();
StripFunctions Avx2Strips();
StripFunctions Avx512Strips();

}  // namespace trainwreck::kernels
