// Floating-point operations of a training: how many the model needs, and how many the device can.
// Not run on a GPU yet.
#pragma once

#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

// Of forward and backward passes over the batches. A backward pass has two products for each of the
// forward pass: for the gradient of the inputs, and for that of the weights. Operations that are
// made again (activation checkpointing) are not counted, nor left out for weights that are frozen:
// the model FLOPs of Chowdhery et al. 2022, "PaLM", appendix B.
double ModelFlops(const Model& model, const std::vector<Batch>& batches);

// FLOP in a second: the best of some products of two square matrices, in the type that the run's
// products have. Takes about 50 ms, and draws no random number.
double MeasurePeakFlops(Device& device, at::ScalarType dtype);

}  // namespace trainwreck
