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
  std::uint32_t max_bits[kLanes] = {};
  std::int32_t zeros[kLanes] = {};
  std::int32_t nonfinite[kLanes] = {};
};

template <typename Format>
void AddRow(const char* data, Lanes& lanes) {
  typename Format::Bits row[kLanes];
  std::memcpy(row, data, sizeof row);
  for (int k = 0; k < kLanes; ++k) {
    const float value = Format::Widen(row[k]);
    const std::uint32_t magnitude = FloatBits(value) & 0x7fffffffu;
    const bool finite = magnitude < kInfinityBits;
    const double x = finite ? value : 0.0f;
    lanes.sum[k] += x;
    lanes.squares[k] += x * x;
    const std::uint32_t finite_magnitude = finite ? magnitude : 0;
    lanes.max_bits[k] = std::max(lanes.max_bits[k], finite_magnitude);
    lanes.zeros[k] += magnitude == 0;
    lanes.nonfinite[k] += !finite;
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
  }
  StripSums sums;
  AddByHalves(lanes.sum, kLanes);
  AddByHalves(lanes.squares, kLanes);
  sums.sum = lanes.sum[0];
  sums.squares = lanes.squares[0];
  for (int k = 0; k < kLanes; ++k) {
    sums.max_bits = std::max(sums.max_bits, lanes.max_bits[k]);
    sums.zeros += lanes.zeros[k];
    sums.nonfinite += lanes.nonfinite[k];
  }
  return sums;
}

}  // namespace

StripFunctions PortableStrips() { return {Strip<Float32>, Strip<Float16>, Strip<BFloat16>}; }

}  // namespace trainwreck::kernels
