#include "kernels/tensor_stats.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/float16.h"
#include "kernels/tensor_stats_order.h"
#include "kernels/versions.h"

namespace trainwreck::kernels {
namespace {

StripFunctions StripsOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return Avx512Strips();
    case InstructionSet::kAvx2:
      return Avx2Strips();
    case InstructionSet::kPortable:
      break;
  }
  return PortableStrips();
}

StripFunction StripOf(const StripFunctions& strips, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return strips.float32;
    case DType::kFloat16:
      return strips.float16;
    case DType::kBFloat16:
      return strips.bfloat16;
    default:
      throw std::invalid_argument(
          "tensor statistics: only float32, float16 and bfloat16, not type " +
          std::to_string(static_cast<int>(dtype)));
  }
}

template <typename T, typename IsNan>
std::int64_t CountIf(const void* data, std::int64_t count, IsNan is_nan) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    T bits;
    std::memcpy(&bits, static_cast<const char*>(data) + i * sizeof(T), sizeof bits);
    total += is_nan(bits);
  }
  return total;
}

// Only where a strip has non-finite elements, which is rare: the fast path need not tell them
// apart.
std::int64_t CountNan(const void* data, std::int64_t count, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return CountIf<std::uint16_t>(data, count, [](auto b) { return (b & 0x7fffu) > 0x7c00u; });
    case DType::kBFloat16:
      return CountIf<std::uint16_t>(data, count, [](auto b) { return (b & 0x7fffu) > 0x7f80u; });
    default:
      return CountIf<std::uint32_t>(data, count,
                                    [](auto b) { return (b & 0x7fffffffu) > 0x7f800000u; });
  }
}

}  // namespace

TensorStats ComputeTensorStats(const TensorView& tensor, InstructionSet set) {
  const StripFunction strip_sums = StripOf(StripsOf(set), tensor.dtype);
  const std::int64_t item_bytes = ItemBytes(tensor.dtype);
  const std::int64_t chunks = Chunks(tensor.count);
  const int slots = static_cast<int>(std::min<std::int64_t>(chunks, kSlots));
  double sums[kSlots], squares[kSlots];
  // Slots beyond the last chunk would add +0: a smaller power of two gives the same bits.
  int width = 1;
  while (width < slots) width *= 2;
  std::fill_n(sums, width, 0.0);
  std::fill_n(squares, width, 0.0);
  TensorStats stats;
  stats.count = tensor.count;
  std::uint32_t max_bits = 0;
  const char* data = static_cast<const char*>(tensor.data);
  std::int64_t left = tensor.count;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    double strip_sum[kStripsPerChunk] = {}, strip_squares[kStripsPerChunk] = {};
    for (int s = 0; s < kStripsPerChunk && left > 0; ++s) {
      const int count = static_cast<int>(std::min<std::int64_t>(left, kStrip));
      const StripSums strip = strip_sums(data, count);
      strip_sum[s] = strip.sum;
      strip_squares[s] = strip.squares;
      max_bits = std::max(max_bits, strip.max_bits);
      stats.zeros += strip.zeros;
      stats.nonfinite += strip.nonfinite;
      if (strip.nonfinite > 0) stats.nan += CountNan(data, count, tensor.dtype);
      data += count * item_bytes;
      left -= count;
    }
    AddByHalves(strip_sum, kStripsPerChunk);
    AddByHalves(strip_squares, kStripsPerChunk);
    sums[chunk % kSlots] += strip_sum[0];
    squares[chunk % kSlots] += strip_squares[0];
  }
  AddByHalves(sums, width);
  AddByHalves(squares, width);
  stats.sum = sums[0];
  stats.sum_squares = squares[0];
  stats.max_abs = FloatFromBits(max_bits);
  return stats;
}

void ComputeTensorStats(std::span<const TensorView> tensors, std::span<TensorStats> stats) {
  if (tensors.size() != stats.size()) {
    throw std::invalid_argument("tensor statistics: " + std::to_string(tensors.size()) +
                                " tensors, room for " + std::to_string(stats.size()));
  }
  const InstructionSet set = ChosenInstructionSet();
  for (std::size_t i = 0; i < tensors.size(); ++i) stats[i] = ComputeTensorStats(tensors[i], set);
}

TensorStats ComputeTensorStats(const TensorView& tensor) {
  return ComputeTensorStats(tensor, ChosenInstructionSet());
}

}  // namespace trainwreck::kernels
