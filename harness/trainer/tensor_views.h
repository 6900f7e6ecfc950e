// Between LibTorch's tensors and the kernels, which know nothing of LibTorch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "kernels/tensor.h"
#include "kernels/tensor_stats.h"

namespace trainwreck {

// A view of a tensor's elements in main memory, and the tensor that owns them: the same one where
// it is there and contiguous, else a copy.
struct HostView {
  explicit HostView(const at::Tensor& tensor);
  at::Tensor owner;
  kernels::TensorView view;
};

// Of any type that kernels/tensor.h lists; throws std::invalid_argument for others.
std::uint64_t DigestOf(const at::Tensor& tensor);

// Of a floating tensor of up to 32 bits; doubles are rounded to floats first.
kernels::TensorStats StatsOf(const at::Tensor& tensor);
// stats[i] is that of tensors[i]; of an undefined tensor, that of none. One call of the kernel.
std::vector<kernels::TensorStats> StatsOf(const std::vector<at::Tensor>& tensors);

}  // namespace trainwreck
