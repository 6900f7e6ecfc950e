#include "trainer/optimizers/clipping.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>

#include <algorithm>

#include "trainer/tensor_views.h"

namespace trainwreck {

std::vector<kernels::TensorStats> GradientStats(const NamedTensors& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const auto& [name, parameter] : parameters) gradients.push_back(parameter.grad());
  return StatsOf(gradients);
}

double GlobalNorm(const std::vector<kernels::TensorStats>& stats) {
  kernels::TensorStats total;
  for (const kernels::TensorStats& one : stats) {
    total.sum_squares += one.sum_squares;
    total.nonfinite += one.nonfinite;
    total.nan += one.nan;
  }
  return total.ieee_norm();
}

std::int64_t CountNonfinite(const std::vector<kernels::TensorStats>& stats) {
  std::int64_t count = 0;
  for (const kernels::TensorStats& one : stats) count += one.nonfinite;
  return count;
}

std::int64_t CountFilled(const std::vector<kernels::TensorStats>& stats) {
  return std::count_if(stats.begin(), stats.end(), [](const kernels::TensorStats& of) {
    return of.sum_squares > 0 || of.nonfinite > 0;
  });
}

bool ClipGradients(const NamedTensors& parameters, double norm, double max_norm) {
  if (norm <= max_norm) return false;
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  if (!gradients.empty()) at::_foreach_mul_(gradients, max_norm / (norm + 1e-6));
  return true;
}

}  // namespace trainwreck
