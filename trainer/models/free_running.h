// Text of a model's own: what it makes of a sequence when its inputs are its own predictions, as in
// inference, and not the targets (teacher forcing).
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/parts.h"

namespace trainwreck {

// [n, length], true where the target before counts in the loss: of the inputs behind a prompt these
// are all. The first input is never one.
at::Tensor BehindTargets(const Batch& batch);

// The batch's inputs [n, length]; where `own` is true, the most probable token in place of it,
// given the inputs before, own ones among them. Takes one pass over the sequence for each position.
at::Tensor WithOwnInputs(Model& model, const Batch& batch, const at::Tensor& own);

// The share of targets that count whose token is the most probable one, where all inputs behind
// targets that count are the model's own.
double FreeRunningAccuracy(Model& model, const Batch& batch);

}  // namespace trainwreck
