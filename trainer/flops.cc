#include "trainer/flops.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <algorithm>

#include "trainer/models/model.h"
#include "trainer/stopwatch.h"

namespace trainwreck {
namespace {

// Large enough to keep the device busy; three of them are 1.8 MB on the CPU.
constexpr std::int64_t kCpuSize = 384;
constexpr std::int64_t kDeviceSize = 4096;
constexpr double kSeconds = 0.05;
constexpr int kProducts = 5;  // at least: the first ones load kernels

}  // namespace

double ModelFlops(const Model& model, const std::vector<Batch>& batches) {
  double forward = 0;
  for (const Batch& batch : batches) {
    if (batch.size() > 0) forward += model.ForwardFlops(batch);
  }
  return 3 * forward;
}

double MeasurePeakFlops(Device& device, at::ScalarType dtype) {
  at::NoGradGuard no_grad;
  const std::int64_t size = device.torch_device().is_cpu() ? kCpuSize : kDeviceSize;
  const auto options = at::TensorOptions().dtype(dtype).device(device.torch_device());
  const at::Tensor factor = at::ones({size, size}, options);
  at::Tensor product = at::ones({size, size}, options);
  double best = 0, spent = 0;
  for (int i = 0; i < kProducts || spent < kSeconds; ++i) {
    double seconds = 0;
    device.BeginTiming();
    {
      Stopwatch watch(seconds);
      at::mm_out(product, factor, factor);
    }
    device.EndTiming();
    seconds = device.TimedSeconds().value_or(seconds);
    spent += seconds;
    const auto edge = static_cast<double>(size);
    best = std::max(best, 2 * edge * edge * edge / seconds);
  }
  return best;
}

}  // namespace trainwreck
