// Connects LibTorch's tensors with the kernels, which do not use LibTorch. A kernel runs where the
// tensors are: on the CPU, or on a device whose kernels are registered; tensors of any other kind
// are copied to main memory first.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/corrupt.h"
#include "kernels/tensor.h"
#include "kernels/tensor_stats.h"

namespace trainwreck {

// Statistics of floating tensors of up to 32 bits; doubles are rounded to floats first. stats[i]
// belongs to tensors[i]; an undefined tensor counts as empty. Calls the kernel once and waits for
// it.
std::vector<kernels::TensorStats> StatsOf(const std::vector<at::Tensor>& tensors);
kernels::TensorStats StatsOf(const at::Tensor& tensor);

// The digests of tensors of any type in kernels/tensor.h; throws std::invalid_argument for others.
std::vector<std::uint64_t> DigestsOf(const std::vector<at::Tensor>& tensors);

// Changes a tensor in place; autograd does not see it. Throws std::invalid_argument for tensors
// that are not of floats of up to 32 bits.
kernels::CorruptionReport Corrupt(at::Tensor& tensor, const kernels::Corruption& corruption);

// The changes of contiguous float32 tensors, all on one device, by an update: changes[i] is the
// change from before[i] to now[i].
std::vector<kernels::ChangeStats> ChangesOf(const std::vector<at::Tensor>& now,
                                            const std::vector<at::Tensor>& before);
// The same for a device without such a kernel, from the statistics of the differences. `changed`
// then counts elements whose values differ: not one that went from 0 to -0, but one that stayed
// NaN.
std::vector<kernels::ChangeStats> ChangesByDifference(const std::vector<at::Tensor>& now,
                                                      const std::vector<at::Tensor>& before);

// into[i] becomes from[i], for the tensors of ChangesOf.
void CopyTensors(const std::vector<at::Tensor>& from, std::vector<at::Tensor>& into);

// The kernels of a kind of device. They run on the calling thread's current stream; each waits for
// its result.
struct DeviceKernels {
  std::function<std::vector<kernels::TensorStats>(std::span<const kernels::TensorView>)> stats;
  std::function<std::vector<std::uint64_t>(std::span<const kernels::TensorView>)> digests;
  std::function<kernels::CorruptionReport(const kernels::MutableTensorView&,
                                          const kernels::Corruption&)>
      corrupt;
};

// Called while the program loads.
struct RegisterDeviceKernels {
  RegisterDeviceKernels(at::DeviceType type, DeviceKernels kernels);
};

}  // namespace trainwreck
