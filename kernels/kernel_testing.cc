#include "kernels/kernel_testing.h"

#include <cmath>
#include <cstring>

#include "kernels/corrupt_plan.h"
#include "kernels/float16.h"

namespace trainwreck::kernels {
namespace {

constexpr std::int64_t kAlignment = 64;

std::uint64_t LoadBits(const void* data, std::int64_t index, DType dtype) {
  const std::int64_t size = ItemBytes(dtype);
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + index * size, size);
  return bits;
}

// Neumaier's sum: the error of every addition is kept and added at the end.
class ExactSum {
 public:
  void Add(long double value) {
    const long double next = sum_ + value;
    error_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - next) + value : (value - next) + sum_;
    sum_ = next;
  }
  double total() const { return static_cast<double>(sum_ + error_); }

 private:
  long double sum_ = 0;
  long double error_ = 0;
};

void Count(double value, TensorStats& stats) {
  stats.nan += std::isnan(value);
  stats.nonfinite += !std::isfinite(value);
  stats.zeros += value == 0;
  if (std::isfinite(value) && std::fabs(value) > stats.max_abs) stats.max_abs = std::fabs(value);
}

}  // namespace

TestTensor::TestTensor(DType dtype, std::int64_t count, std::int64_t misaligned_bytes)
    : dtype_(dtype),
      count_(count),
      offset_(misaligned_bytes),
      bytes_(static_cast<std::size_t>(count * ItemBytes(dtype) + misaligned_bytes + kAlignment)) {}

char* TestTensor::data() {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
  return bytes_.data() + (kAlignment - address % kAlignment) % kAlignment + offset_;
}

double TestTensor::at(std::int64_t index) const { return Decode(bits(index), dtype_); }
void TestTensor::set(std::int64_t index, double value) { set_bits(index, Encode(value, dtype_)); }
std::uint64_t TestTensor::bits(std::int64_t index) const {
  return LoadBits(view().data, index, dtype_);
}
void TestTensor::set_bits(std::int64_t index, std::uint64_t bits) {
  std::memcpy(data() + index * ItemBytes(dtype_), &bits, ItemBytes(dtype_));
}

void TestTensor::FillNormal(std::uint64_t seed) {
  for (std::int64_t i = 0; i < count_; ++i) {
    set(i, StandardNoise(seed, static_cast<std::uint64_t>(i)));
  }
}

void TestTensor::FillBits(std::uint64_t seed) {
  for (std::int64_t i = 0; i < count_; ++i) {
    set_bits(i, RandomBits(seed, 0, static_cast<std::uint64_t>(i)) >> 13);
  }
}

std::string DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat64:
      return "float64";
    case DType::kInt64:
      return "int64";
    case DType::kInt32:
      return "int32";
    case DType::kUint8:
      return "uint8";
  }
  return "";
}

TensorStats StatsOracle(const TensorView& tensor) {
  TensorStats stats;
  stats.count = tensor.count;
  ExactSum sum, squares;
  for (std::int64_t i = 0; i < tensor.count; ++i) {
    const double value = Decode(LoadBits(tensor.data, i, tensor.dtype), tensor.dtype);
    Count(value, stats);
    if (!std::isfinite(value)) continue;
    sum.Add(value);
    squares.Add(static_cast<long double>(value) * value);
  }
  stats.sum = sum.total();
  stats.sum_squares = squares.total();
  return stats;
}

namespace {

template <typename Bits, typename Widen>
TensorStats NaiveLoop(const TensorView& tensor, Widen widen) {
  TensorStats stats;
  stats.count = tensor.count;
  for (std::int64_t i = 0; i < tensor.count; ++i) {
    Bits bits;
    std::memcpy(&bits, static_cast<const char*>(tensor.data) + i * sizeof bits, sizeof bits);
    const double value = widen(bits);
    Count(value, stats);
    if (!std::isfinite(value)) continue;
    stats.sum += value;
    stats.sum_squares += value * value;
  }
  return stats;
}

}  // namespace

TensorStats NaiveStats(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kFloat16:
      return NaiveLoop<std::uint16_t>(tensor, WidenFloat16);
    case DType::kBFloat16:
      return NaiveLoop<std::uint16_t>(tensor, WidenBFloat16);
    default:
      return NaiveLoop<std::uint32_t>(tensor, FloatFromBits);
  }
}

std::int64_t NaiveCorrupt(const MutableTensorView& tensor, const Corruption& corruption) {
  const Selection selection = PlanCorruption(tensor, corruption);
  const Change change{corruption.kind, corruption.bit, corruption.value, corruption.seed};
  const std::int64_t bytes = ItemBytes(tensor.dtype);
  std::int64_t changed = 0;
  for (std::int64_t j = 0; j < selection.elements; ++j) {
    const std::int64_t index = selection.Index(j);
    const std::uint64_t before = LoadBits(tensor.data, index, tensor.dtype);
    const std::uint64_t after = CorruptBits(before, index, tensor.dtype, change);
    std::memcpy(static_cast<char*>(tensor.data) + index * bytes, &after, bytes);
    changed += before != after;
  }
  return changed;
}

std::vector<std::int64_t> GptSizes(int layers, std::int64_t width, std::int64_t vocabulary,
                                   std::int64_t positions) {
  std::vector<std::int64_t> sizes = {vocabulary * width, positions * width};
  for (int layer = 0; layer < layers; ++layer) {
    for (std::int64_t size :
         {width, width, 3 * width * width, 3 * width, width * width, width,         // attention
          width, width, 4 * width * width, 4 * width, 4 * width * width, width}) {  // mlp
      sizes.push_back(size);
    }
  }
  for (std::int64_t size : {width, width, vocabulary * width, vocabulary}) sizes.push_back(size);
  return sizes;
}

}  // namespace trainwreck::kernels
