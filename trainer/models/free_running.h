// Free running: the model's inputs are its own predictions, as in inference, and not the targets
// (teacher forcing).
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/parts.h"

namespace trainwreck {

// A mask [n, length], true at inputs whose preceding target counts in the loss. These are all
// inputs after a prompt. The first input is never one of them.
at::Tensor BehindTargets(const Batch& batch);

// The batch's inputs [n, length], with the most probable token where `own` is true, given the
// inputs before it, which include own ones. Takes one pass over the sequence for each position.
at::Tensor WithOwnInputs(Model& model, const Batch& batch, const at::Tensor& own);

// The accuracy in free running: the share of the counting targets whose token is the most probable
// one, where all inputs after counting targets are the model's own.
double FreeRunningAccuracy(Model& model, const Batch& batch);

}  // namespace trainwreck
