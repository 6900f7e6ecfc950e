// The operand of a kernel: a pointer, a number of elements and a type. Plain C++ without LibTorch,
// so that trainer, injectors, tests and other programs can use the kernels alike.
//
//   const at::Tensor plain = tensor.contiguous();
//   TensorView view{plain.const_data_ptr(), plain.numel(), DType::kFloat32};
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainwreck::kernels {

// The element types. Statistics and corruption support the floating types of up to 32 bits; digests
// support all.
enum class DType : std::uint8_t { kFloat32, kFloat16, kBFloat16, kFloat64, kInt64, kInt32, kUint8 };

constexpr std::int64_t ItemBytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kUint8:
      return 1;
  }
  return 0;
}

// Contiguous elements. `data` may have any alignment; it may be null when count is 0.
struct TensorView {
  const void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::kFloat32;

  std::int64_t bytes() const { return count * ItemBytes(dtype); }
};

struct MutableTensorView {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::kFloat32;

  // A writable tensor is also readable.
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator TensorView() const { return {data, count, dtype}; }
};

}  // namespace trainwreck::kernels
