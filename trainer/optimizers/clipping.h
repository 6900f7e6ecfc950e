// The global gradient norm, and clipping by it (Pascanu et al. 2013).
#pragma once

#include <vector>

#include "kernels/tensor_stats.h"
#include "trainer/optimizers/optimizers.h"

namespace trainwreck {

// Statistics of each parameter's gradient, all in one read; statistics of an empty tensor where
// there is no gradient.
std::vector<kernels::TensorStats> GradientStats(const NamedTensors& parameters);

// The 2-norm of all tensors together: NaN or infinite where an element is.
double GlobalNorm(const std::vector<kernels::TensorStats>& stats);

// The number of elements that are not finite.
std::int64_t CountNonfinite(const std::vector<kernels::TensorStats>& stats);
// The number of tensors with an element that is not 0.
std::int64_t CountFilled(const std::vector<kernels::TensorStats>& stats);

// Scales all gradients by max_norm / (norm + 1e-6) when `norm` is above `max_norm`, as
// torch.nn.utils.clip_grad_norm_ does: a NaN norm makes all gradients NaN, an infinite one 0 or
// NaN. Returns whether it did.
bool ClipGradients(const NamedTensors& parameters, double norm, double max_norm);

}  // namespace trainwreck
