// Activation checkpointing (Chen et al. 2016, "Training deep nets with sublinear memory cost"): the
// forward pass of a part of the model keeps its input alone, and the backward pass computes again
// what it needs. Memory for time; the gradients have the same bits, also with dropout.
//
//   x = RecomputeInBackward([&](const at::Tensor& x) { return block->Forward(x); }, x,
//                           block->parameters());
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <vector>

namespace trainwreck {

using Forward = std::function<at::Tensor(const at::Tensor&)>;

// Restores the surroundings of a forward pass, as long as the returned object lives.
using Surround = std::function<std::shared_ptr<void>()>;
// Records the surroundings of a forward pass on `device`, before it begins.
using Remember = std::function<Surround(c10::Device device)>;

Surround RememberAutocast(c10::Device device);
// The generator that layers draw from on that device: the second pass draws the same numbers, and
// leaves the generator where it was.
Surround RememberGenerator(c10::Device device);
Surround RememberBoth(c10::Device device);

// forward(input), with the same surroundings in both passes. `parameters` are all tensors besides
// the input that `forward` has gradients for; it must outlive the graph and have no effect but its
// result. Second derivatives are not supported.
at::Tensor RecomputeInBackward(const Forward& forward, const at::Tensor& input,
                               const std::vector<at::Tensor>& parameters,
                               const Remember& remember = RememberBoth);

}  // namespace trainwreck
