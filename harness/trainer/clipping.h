// The global gradient norm, and clipping by it (Pascanu et al. 2013).
#pragma once

#include <vector>

#include "harness/trainer/optimizers.h"

namespace trainwreck {

// The 2-norm of each parameter's gradient; 0 where there is none.
std::vector<double> GradientNorms(const NamedTensors& parameters);

double GlobalNorm(const std::vector<double>& norms);

// Scales all gradients by max_norm / (norm + 1e-6) when `norm` is above `max_norm`, as
// torch.nn.utils.clip_grad_norm_ does: a NaN norm makes all gradients NaN, an infinite one 0 or
// NaN. Returns whether it did.
bool ClipGradients(const NamedTensors& parameters, double norm, double max_norm);

// Elements of gradients that are not finite.
std::int64_t CountNonfiniteGradients(const NamedTensors& parameters);

}  // namespace trainwreck
