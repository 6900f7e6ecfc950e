#include "trainer/references/tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainwreck::reference {

Matrix Noise(int rows, int cols, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Matrix matrix(rows, cols);
  for (double& value : matrix.values) value = normal(random);
  return matrix;
}

at::Tensor TensorOf(const Matrix& matrix, at::ScalarType dtype) {
  return at::tensor(matrix.values, at::kDouble).to(dtype).view({matrix.rows, matrix.cols});
}

Matrix MatrixOf(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().to(at::kDouble).contiguous();
  const int cols = tensor.dim() == 0 ? 1 : static_cast<int>(tensor.size(-1));
  Matrix matrix(static_cast<int>(tensor.numel()) / cols, cols);
  std::copy_n(plain.const_data_ptr<double>(), plain.numel(), matrix.values.begin());
  return matrix;
}

Parameters ValuesOf(const NamedTensors& tensors) {
  Parameters values;
  for (const auto& [name, tensor] : tensors) values[name] = MatrixOf(tensor);
  return values;
}

Parameters GradientsOf(const NamedTensors& tensors) {
  Parameters gradients;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor& gradient = tensor.grad();
    gradients[name] = MatrixOf(gradient.defined() ? gradient : at::zeros_like(tensor));
  }
  return gradients;
}

void FillWithNoise(const NamedTensors& tensors, std::mt19937_64& random) {
  at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor noise =
        TensorOf(Noise(1, static_cast<int>(tensor.numel()), random), tensor.scalar_type());
    at::Tensor into = tensor;
    into.copy_(noise.view(tensor.sizes()));
  }
}

double Apart(const Matrix& a, const Matrix& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.rows != b.rows || a.cols != b.cols) return kInfinity;
  double worst = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double x = a.values[i], y = b.values[i];
    if (std::isnan(x) != std::isnan(y)) return kInfinity;
    if (x == y || std::isnan(x)) continue;
    worst = std::max(worst, std::fabs(x - y) / (1 + std::fabs(y)));
  }
  return worst;
}

double Apart(const Parameters& a, const Parameters& b) {
  double worst = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (const auto& [name, matrix] : a) {
    const auto other = b.find(name);
    worst = std::max(worst, other == b.end() ? std::numeric_limits<double>::infinity()
                                             : Apart(matrix, other->second));
  }
  return worst;
}

}  // namespace trainwreck::reference
