// What the kernels' tests and benchmarks share: tensors of all types and values, the oracles in
// higher precision, and version 1, the plain loop that the other versions are measured against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/corrupt.h"
#include "kernels/tensor.h"
#include "kernels/tensor_stats.h"

namespace trainwreck::kernels {

// Owns elements of one type, at a chosen distance from an aligned address.
class TestTensor {
 public:
  TestTensor(DType dtype, std::int64_t count, std::int64_t misaligned_bytes = 0);
  TestTensor(TestTensor&&) = default;

  MutableTensorView view() { return {data(), count_, dtype_}; }
  TensorView view() const { return {const_cast<TestTensor*>(this)->data(), count_, dtype_}; }
  DType dtype() const { return dtype_; }
  std::int64_t count() const { return count_; }

  double at(std::int64_t index) const;
  void set(std::int64_t index, double value);  // rounded to the type
  std::uint64_t bits(std::int64_t index) const;
  void set_bits(std::int64_t index, std::uint64_t bits);

  void FillNormal(std::uint64_t seed);  // mean 0, standard deviation 1
  // Fills with any bit pattern: all magnitudes, subnormals, infinities and NaNs of all kinds.
  void FillBits(std::uint64_t seed);

 private:
  char* data();

  DType dtype_;
  std::int64_t count_;
  std::int64_t offset_;
  std::vector<char> bytes_;
};

std::string DTypeName(DType dtype);
inline constexpr DType kFloatTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

// The statistics, element by element in long double with compensated sums (Neumaier 1974): exact to
// the last bits of a double.
TensorStats StatsOracle(const TensorView& tensor);

// Version 1: one element after another, one chain of additions.
TensorStats NaiveStats(const TensorView& tensor);

// Version 1: one element after another. Returns the number of changed elements.
std::int64_t NaiveCorrupt(const MutableTensorView& tensor, const Corruption& corruption);

// The parameters of a gpt by their sizes, as a training step sees them: many small tensors.
std::vector<std::int64_t> GptSizes(int layers, std::int64_t width, std::int64_t vocabulary,
                                   std::int64_t positions);

}  // namespace trainwreck::kernels
