// Activation checkpointing (Chen et al. 2016, "Training deep nets with sublinear memory cost"): the
// forward pass of a part of the model keeps its input alone, and the backward pass computes again
// what it needs. Memory for time; the gradients have the same bits.
//
//   x = RecomputeInBackward([&](const at::Tensor& x) { return block->Forward(x); }, x,
//                           block->parameters());
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace trainwreck {

using Forward = std::function<at::Tensor(const at::Tensor&)>;

// forward(input), under the same autocast in both passes. `parameters` are all tensors besides the
// input that `forward` has gradients for; it must outlive the graph, draw no random numbers and
// have no effect but its result. Second derivatives are not supported.
at::Tensor RecomputeInBackward(const Forward& forward, const at::Tensor& input,
                               const std::vector<at::Tensor>& parameters);

}  // namespace trainwreck
