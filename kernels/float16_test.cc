#include "kernels/float16.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/corrupt_element.h"

namespace trainwreck::kernels {
namespace {

// From the definition of the formats: sign, exponent, mantissa.
double Value(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double fraction =
      std::ldexp(static_cast<double>(bits & ((1u << mantissa_bits) - 1)), -mantissa_bits);
  const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

TEST(Float16, WidensEveryPattern) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const std::uint16_t half = static_cast<std::uint16_t>(bits);
    const double float16 = Value(bits, 5, 10), bfloat16 = Value(bits, 8, 7);
    if (std::isnan(float16)) {
      EXPECT_TRUE(std::isnan(WidenFloat16(half)));
    } else {
      EXPECT_EQ(WidenFloat16(half), float16) << bits;
      EXPECT_EQ(std::signbit(WidenFloat16(half)), std::signbit(float16)) << bits;
    }
    if (std::isnan(bfloat16)) {
      EXPECT_TRUE(std::isnan(WidenBFloat16(half)));
    } else {
      EXPECT_EQ(WidenBFloat16(half), bfloat16) << bits;
    }
    if (HasFailure()) return;
  }
}

template <typename Round>
void ExpectRoundsToNearestEven(Round round, int exponent_bits, int mantissa_bits) {
  const std::uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  for (std::uint32_t bits = 0; bits < infinity; ++bits) {
    const double value = Value(bits, exponent_bits, mantissa_bits);
    // The next one up; beyond the largest, what it would be were the exponent larger.
    const double next = bits + 1 == infinity
                            ? 2 * value - Value(bits - 1, exponent_bits, mantissa_bits)
                            : Value(bits + 1, exponent_bits, mantissa_bits);
    const double middle = (value + next) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    const std::uint32_t sign = 1u << (exponent_bits + mantissa_bits);
    ASSERT_EQ(round(value), bits);
    ASSERT_EQ(round(-value), sign | bits);
    ASSERT_EQ(round(middle), even) << "between " << value << " and " << next;
    ASSERT_EQ(round(std::nextafter(middle, 0)), bits);
    ASSERT_EQ(round(std::nextafter(middle, INFINITY)), bits + 1);
    ASSERT_EQ(round(-middle), sign | even);
  }
  ASSERT_EQ(round(INFINITY), infinity);
  ASSERT_EQ(round(1e300), infinity);
  ASSERT_EQ(round(1e-300), 0u);
  ASSERT_GT(round(NAN), infinity);
}

TEST(Float16, RoundsEveryValueAndEveryMiddle) {
  ExpectRoundsToNearestEven([](double x) -> std::uint32_t { return RoundToFloat16(x); }, 5, 10);
}

TEST(BFloat16, RoundsEveryValueAndEveryMiddle) {
  ExpectRoundsToNearestEven([](double x) -> std::uint32_t { return RoundToBFloat16(x); }, 8, 7);
}

TEST(Float32, RoundsAsTheProcessorDoes) {
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const double value = std::bit_cast<double>(RandomBits(1, 0, i));
    // Exponents of floats, subnormals included, are few among those of doubles: shift them there.
    int exponent;
    const double near = std::ldexp(std::frexp(value, &exponent), static_cast<int>(i % 300) - 160);
    for (double x : {value, near}) {
      if (std::isnan(x)) continue;
      ASSERT_EQ(RoundToFloat32(x), FloatBits(static_cast<float>(x))) << x;
    }
  }
}

}  // namespace
}  // namespace trainwreck::kernels
