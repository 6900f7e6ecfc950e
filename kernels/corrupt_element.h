// The choice of a corruption's elements and their new values: the part of corrupt.h that CPU and
// GPU share, so that both give the same bits.
#pragma once

#include <cstdint>

#include "kernels/corrupt.h"
#include "kernels/digest_mix.h"
#include "kernels/float16.h"
#include "kernels/host_device.h"

namespace trainwreck::kernels {

// A random number for each (seed, stream, index).
TRAINWRECK_HOST_DEVICE inline std::uint64_t RandomBits(std::uint64_t seed, std::uint64_t stream,
                                                       std::uint64_t index) {
  return DigestTerm(DigestTerm(DigestTerm(seed, 1), stream), index);
}

// The j-th of a random order of 0 .. count-1, without keeping the order: a Feistel network is a
// permutation of 0 .. 4^b-1, and walking along it until the value is below count permutes 0 ..
// count-1 (Black and Rogaway 2002). Under four steps are expected, since 4^b < 4 * count.
TRAINWRECK_HOST_DEVICE inline std::int64_t ShuffledIndex(std::int64_t j, std::int64_t count,
                                                         std::uint64_t seed) {
  int half_bits = 1;
  while ((std::int64_t{1} << (2 * half_bits)) < count) ++half_bits;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t value = static_cast<std::uint64_t>(j);
  do {
    std::uint64_t left = value >> half_bits;
    std::uint64_t right = value & mask;
    for (std::uint64_t round = 0; round < 6; ++round) {
      const std::uint64_t next = (left ^ RandomBits(seed, round, right)) & mask;
      left = right;
      right = next;
    }
    value = left << half_bits | right;
  } while (value >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(value);
}

// Where a corruption acts, made ready for a tensor of `count` elements.
struct Selection {
  std::int64_t count = 0;
  std::int64_t elements = 0;
  bool region = false;
  std::int64_t first = 0;  // of a region
  std::uint64_t seed = 0;

  TRAINWRECK_HOST_DEVICE std::int64_t Index(std::int64_t j) const {
    return region ? first + j : ShuffledIndex(j, count, seed);
  }
};

// Converts a number below 2^53, as a cast does, for vectors without a cast: its halves become the
// mantissas of 2^84 and 2^52, which are then subtracted.
TRAINWRECK_HOST_DEVICE inline double ExactDouble(std::uint64_t number) {
  const double high = std::bit_cast<double>(number >> 32 | 0x4530000000000000);
  const double low = std::bit_cast<double>((number & 0xffffffff) | 0x4330000000000000);
  return (high - (0x1p84 + 0x1p52)) + low;
}

// Noise with mean 0 and variance 1: the sum of 12 uniform numbers of 53 bits, less 6 (Irwin-Hall).
// All its additions are exact or correctly rounded, unlike log and cos, which differ between CPU
// and GPU.
TRAINWRECK_HOST_DEVICE inline double StandardNoise(std::uint64_t seed, std::uint64_t index) {
  double sum = -6.0;
  TRAINWRECK_UNROLL
  for (std::uint64_t k = 0; k < 12; ++k) {
    sum += ExactDouble(RandomBits(seed, 64 + k, index) >> 11) * 0x1p-53;
  }
  return sum;
}

TRAINWRECK_HOST_DEVICE inline double Decode(std::uint64_t bits, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return WidenFloat16(static_cast<std::uint16_t>(bits));
    case DType::kBFloat16:
      return WidenBFloat16(static_cast<std::uint16_t>(bits));
    default:
      return FloatFromBits(static_cast<std::uint32_t>(bits));
  }
}

TRAINWRECK_HOST_DEVICE inline std::uint64_t Encode(double value, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return RoundToFloat16(value);
    case DType::kBFloat16:
      return RoundToBFloat16(value);
    default:
      return RoundToFloat32(value);
  }
}

// The fields of a Corruption that say what becomes of an element.
struct Change {
  Corruption::Kind kind;
  int bit;
  double value;
  std::uint64_t seed;
};

// The bits that replace `bits` at element `index`. No product is followed by a sum, except where it
// is exact, so that fusing them cannot change the result.
TRAINWRECK_HOST_DEVICE inline std::uint64_t CorruptBits(std::uint64_t bits, std::int64_t index,
                                                        DType dtype, const Change& change) {
  switch (change.kind) {
    case Corruption::Kind::kFlipBit:
      return bits ^ (std::uint64_t{1} << change.bit);
    case Corruption::Kind::kSetValue:
      return Encode(change.value, dtype);
    case Corruption::Kind::kScale:
      return Encode(Decode(bits, dtype) * change.value, dtype);
    case Corruption::Kind::kAddNoise: {
      const double noise = StandardNoise(change.seed, static_cast<std::uint64_t>(index));
#ifdef __CUDA_ARCH__
      return Encode(__dadd_rn(Decode(bits, dtype), __dmul_rn(noise, change.value)), dtype);
#else
      return Encode(Decode(bits, dtype) + noise * change.value, dtype);
#endif
    }
    case Corruption::Kind::kZero:
      return 0;
  }
  return bits;
}

}  // namespace trainwreck::kernels
