// Seeing what the modules of a model put out while it runs: what register_forward_hook is to
// Python's nn.Module, and what LibTorch's C++ modules lack. Telemetry reads activations this way,
// the diagnosis of a NaN finds where it was born, and an injector can replace an output.
//
//   class PrintNorms : public ForwardHook {
//     void OnOutput(const std::string& module, at::Tensor& output) override { ... }
//   };
//   PrintNorms print;
//   HookScope scope(*model, &print);
//   model->Loss(batch);  // calls `print` for "embed", "blocks.0.norm1", ... in the order computed
//
// A model that was never given a hook pays for a null pointer's test per module and pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace trainwreck {

class ForwardHook {
 public:
  virtual ~ForwardHook() = default;
  // `module` is its path in the model; `output` is part of the graph. To change what follows,
  // assign another tensor; writing into this one may break the backward pass. Called in
  // evaluations, and again in a backward pass that recomputes activations, too.
  virtual void OnOutput(const std::string& module, at::Tensor& output) = 0;
};

}  // namespace trainwreck
