// Masters: copies in fp32 of parameters that the model has in 16 bits (Micikevicius et al. 2018,
// "Mixed precision training"). An update is often smaller than the distance to the next number of
// 16 bits; a parameter that has no master then stays where it is.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "trainer/parts.h"

namespace trainwreck {

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(NamedTensors parameters)>;

// An optimizer around the one that `make` makes for the masters. Each step gives it their gradients
// and rounds the result into the parameters. Gradients are kept in fp32 from the end of each
// backward pass on: micro-batches and ranks are added up, and the global norm is clipped, in fp32,
// as Megatron-LM and DeepSpeed do. State: optimizer.master.<parameter>, and the inner optimizer's.
// After loading a checkpoint without masters, they are copies of the loaded parameters.
std::unique_ptr<Optimizer> WithMasters(NamedTensors parameters, const MakeOptimizer& make);

// The number of elements of `parameters` that differ from their master, rounded to the parameter's
// type; empty: the optimizer keeps no masters.
std::optional<double> ElementsOffMaster(const NamedTensors& parameters, const Optimizer& optimizer);

}  // namespace trainwreck
