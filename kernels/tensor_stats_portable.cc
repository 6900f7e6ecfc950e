// Version 2: 16 independent lanes instead of version 1's single chain of dependent additions; a
// compiler turns the lanes into whatever vectors the processor's baseline has.
#include <algorithm>
#include <cstring>

#include "kernels/float16.h"
#include "kernels/tensor_stats_order.h"

namespace trainwreck::kernels {
namespace {

struct Float32 {
  using Bits = std::uint32_t;
  static float Widen(Bits bits) { return FloatFromBits(bits); }
};
struct Float16 {
  using Bits = std::uint16_t;
  static float Widen(Bits bits) { return WidenFloat16(bits); }
};
struct BFloat16 {
  using Bits = std::uint16_t;
  static float Widen(Bits bits) { return WidenBFloat16(bits); }
};

struct Lanes {
  double sum[kLanes] = {};
  double squares[kLanes] = {};
  std::int32_t max_bits[kLanes] = {};
  std::int32_t zeros[kLanes] = {};
  std::int32_t finite[kLanes] = {};
};

// Masks instead of conditions, and one loop per element size: compilers vectorize these.
template <typename Format>
void AddRow(const char* data, Lanes& lanes) {
  typename Format::Bits row[kLanes];
  std::memcpy(row, data, sizeof row);
  float values[kLanes];
  for (int k = 0; k < kLanes; ++k) values[k] = Format::Widen(row[k]);
  std::int32_t bits[kLanes];
  std::memcpy(bits, values, sizeof bits);
  for (int k = 0; k < kLanes; ++k) {
    const std::int32_t magnitude = bits[k] & 0x7fffffff;
    const std::int32_t finite = -static_cast<std::int32_t>(magnitude < kInfinityBits);
    const std::int32_t finite_magnitude = magnitude & finite;
    lanes.max_bits[k] = lanes.max_bits[k] > finite_magnitude ? lanes.max_bits[k] : finite_magnitude;
    lanes.zeros[k] += magnitude == 0;
    lanes.finite[k] -= finite;
    bits[k] &= finite;
  }
  std::memcpy(values, bits, sizeof bits);
  for (int k = 0; k < kLanes; ++k) {
    const double x = values[k];
    lanes.sum[k] += x;
    lanes.squares[k] += x * x;
  }
}

template <typename Format>
StripSums Strip(const void* data, int count) {
  constexpr int kRowBytes = kLanes * sizeof(typename Format::Bits);
  const char* row = static_cast<const char*>(data);
  Lanes lanes;
  const int rows = count / kLanes;
  for (int i = 0; i < rows; ++i, row += kRowBytes) AddRow<Format>(row, lanes);
  const int rest = count % kLanes;
  if (rest > 0) {
    char padded[kRowBytes] = {};
    std::memcpy(padded, row, rest * sizeof(typename Format::Bits));
    AddRow<Format>(padded, lanes);
    lanes.zeros[0] -= kLanes - rest;
    lanes.finite[0] -= kLanes - rest;
  }
  StripSums sums;
  sums.nonfinite = count;
  AddByHalves(lanes.sum, kLanes);
  AddByHalves(lanes.squares, kLanes);
  sums.sum = lanes.sum[0];
  sums.squares = lanes.squares[0];
  for (int k = 0; k < kLanes; ++k) {
    sums.max_bits = std::max(sums.max_bits, static_cast<std::uint32_t>(lanes.max_bits[k]));
    sums.zeros += lanes.zeros[k];
    sums.nonfinite -= lanes.finite[k];
  }
  return sums;
}

}  // namespace

StripFunctions PortableStrips() { return {Strip<Float32>, Strip<Float16>, Strip<BFloat16>}; }

}  // namespace trainwreck::kernels
