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

// No branches and no shifts by differing amounts, here and in RoundTo: loops over them vectorize.
TRAINWRECK_HOST_DEVICE inline float WidenFloat16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  // The exponent's new bias, twice for infinities and NaNs, whose exponent stays the largest.
  const std::uint32_t is_special = magnitude >= 0x7c00u;
  const std::uint32_t normal = (magnitude << 13) + (112u << 23) + is_special * (112u << 23);
  // Units of 2^-24, exact in a float: the last bits of 0.5 and of what is more than it.
  const std::uint32_t subnormal = FloatBits(FloatFromBits(0x3f000000u | magnitude) - 0.5f);
  const std::uint32_t is_subnormal = 0u - static_cast<std::uint32_t>(magnitude < 0x400u);
  return FloatFromBits(sign | (subnormal & is_subnormal) | (normal & ~is_subnormal));
}

TRAINWRECK_HOST_DEVICE constexpr std::int64_t AtLeast(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}
TRAINWRECK_HOST_DEVICE constexpr std::int64_t AtMost(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

// Rounds to a binary format of `kExponentBits` and `kMantissaBits`, to nearest, ties to even; too
// large becomes infinite. One rounding from double, none in between: that of the sum with a power
// of two whose last bit weighs what the result's last bit weighs. All NaNs become one, without a
// sign, which processors choose differently.
template <int kExponentBits, int kMantissaBits>
TRAINWRECK_HOST_DEVICE inline std::uint32_t RoundTo(double value) {
  constexpr std::int64_t kBias = (1 << (kExponentBits - 1)) - 1;
  constexpr std::int64_t kInfinity = ((std::int64_t{1} << kExponentBits) - 1) << kMantissaBits;
  constexpr std::uint64_t kNaN = kInfinity | std::int64_t{1} << (kMantissaBits - 1);  // quiet
  constexpr std::uint64_t kInfiniteDouble = 0x7ff0000000000000;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits >> 63 << (kExponentBits + kMantissaBits);
  const std::uint64_t magnitude = bits & 0x7fffffffffffffff;
  const std::int64_t exponent = static_cast<std::int64_t>(magnitude >> 52) - 1023 + kBias;
  // Subnormal numbers share the last bit of the least normal one.
  const std::int64_t normal_exponent = AtMost(AtLeast(exponent, 1), 2 * kBias + 1);
  const std::uint64_t power =
      static_cast<std::uint64_t>(normal_exponent - kBias + 1023 + 52 - kMantissaBits) << 52;
  const double sum = std::bit_cast<double>(magnitude) + std::bit_cast<double>(power);
  const std::uint64_t mantissa = std::bit_cast<std::uint64_t>(sum) - power;
  // A carry out of the mantissa raises the exponent, which is what rounding up asks for.
  const std::uint64_t base = static_cast<std::uint64_t>(AtLeast(exponent - 1, 0)) << kMantissaBits;
  const std::int64_t size = AtMost(static_cast<std::int64_t>(base + mantissa), kInfinity);
  const std::uint64_t number = sign | static_cast<std::uint64_t>(size);
  const std::uint64_t is_nan = 0 - static_cast<std::uint64_t>(magnitude > kInfiniteDouble);
  return static_cast<std::uint32_t>((kNaN & is_nan) | (number & ~is_nan));
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
