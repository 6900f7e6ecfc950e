// float16 and bfloat16 without a library: exact widening, and rounding to nearest even, on CPU and
// GPU alike.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/host_device.h"

namespace trainwreck::kernels {

TRAINWRECK_HOST_DEVICE inline std::uint32_t FloatBits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
TRAINWRECK_HOST_DEVICE inline float FloatFromBits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

TRAINWRECK_HOST_DEVICE inline float WidenBFloat16(std::uint16_t bits) {
  return FloatFromBits(static_cast<std::uint32_t>(bits) << 16);
}

TRAINWRECK_HOST_DEVICE inline float WidenFloat16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinite or NaN
    return FloatFromBits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude >= 0x400u) return FloatFromBits(sign | ((magnitude << 13) + (112u << 23)));
  // Subnormal: magnitude * 2^-24, exact in a float.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return FloatFromBits(sign | FloatBits(value));
}

// Rounds to a binary format of `kExponentBits` and `kMantissaBits`, to nearest, ties to even; too
// large becomes infinite. One rounding from double, none in between.
template <int kExponentBits, int kMantissaBits>
TRAINWRECK_HOST_DEVICE inline std::uint32_t RoundTo(double value) {
  constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr std::uint64_t kInfinity = ((std::uint64_t{1} << kExponentBits) - 1) << kMantissaBits;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = (bits >> 63) << (kExponentBits + kMantissaBits);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffffull;
  if (magnitude > 0x7ff0000000000000ull) {  // NaN: quiet
    return static_cast<std::uint32_t>(sign | kInfinity | std::uint64_t{1} << (kMantissaBits - 1));
  }
  if (magnitude == 0x7ff0000000000000ull) return static_cast<std::uint32_t>(sign | kInfinity);
  int exponent = static_cast<int>(magnitude >> 52) - 1023;
  std::uint64_t mantissa = magnitude & 0xfffffffffffffull;
  if (exponent < -(kBias + kMantissaBits)) return static_cast<std::uint32_t>(sign);
  mantissa |= std::uint64_t{1} << 52;
  // How many of the 52 fraction bits fall off; more in the subnormal range.
  int dropped = 52 - kMantissaBits;
  std::uint64_t result = 0;
  if (exponent < 1 - kBias) {
    dropped += 1 - kBias - exponent;
  } else {
    result = static_cast<std::uint64_t>(exponent + kBias - 1) << kMantissaBits;
  }
  const std::uint64_t kept = mantissa >> dropped;
  const std::uint64_t rest = mantissa & ((std::uint64_t{1} << dropped) - 1);
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  // The carry out of the mantissa raises the exponent, which is what rounding up asks for.
  result += kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
  if (result > kInfinity) result = kInfinity;
  return static_cast<std::uint32_t>(sign | result);
}

TRAINWRECK_HOST_DEVICE inline std::uint16_t RoundToFloat16(double value) {
  return static_cast<std::uint16_t>(RoundTo<5, 10>(value));
}
TRAINWRECK_HOST_DEVICE inline std::uint16_t RoundToBFloat16(double value) {
  return static_cast<std::uint16_t>(RoundTo<8, 7>(value));
}
TRAINWRECK_HOST_DEVICE inline std::uint32_t RoundToFloat32(double value) {
  return RoundTo<8, 23>(value);
}

}  // namespace trainwreck::kernels
