#include "harness/trainer/clipping.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>

#include <cmath>

#include "harness/trainer/tensor_stats.h"

namespace trainwreck {
namespace {

// Nothing is copied where the gradient has its parameter's layout (contiguous, float) on the CPU.
at::Tensor Plain(const at::Tensor& gradient) {
  return gradient.to(at::kCPU, at::kFloat).contiguous();
}

}  // namespace

std::vector<double> GradientNorms(const NamedTensors& parameters) {
  std::vector<double> norms;
  norms.reserve(parameters.size());
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) {
      norms.push_back(0);
      continue;
    }
    const at::Tensor plain = Plain(gradient);
    norms.push_back(std::sqrt(SumSquares(plain.const_data_ptr<float>(), plain.numel())));
  }
  return norms;
}

double GlobalNorm(const std::vector<double>& norms) {
  double squares = 0;
  for (double norm : norms) squares += norm * norm;
  return std::sqrt(squares);
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

std::int64_t CountNonfiniteGradients(const NamedTensors& parameters) {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    const at::Tensor plain = Plain(gradient);
    count += CountNonfinite(plain.const_data_ptr<float>(), plain.numel());
  }
  return count;
}

}  // namespace trainwreck
