// Shows the outputs of a model's modules while it runs, as register_forward_hook of Python's
// nn.Module does; LibTorch's C++ modules have no such hook. Telemetry reads activations with it,
// the diagnosis of a NaN finds its origin, and an injector can replace an output.
//
//   class PrintNorms : public ForwardHook {
//     void OnOutput(const std::string& module, at::Tensor& output) override { ... }
//   };
//   PrintNorms print;
//   HookScope scope(*model, &print);
//   model->Loss(batch);  // calls `print` for "embed", "blocks.0.norm1", ... in the order computed
//
// A model without a hook pays only for one test of a null pointer per module and pass.
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
  // A section of the model (model.h) begins, in the same cases.
  virtual void OnBegin(const std::string& /*module*/) {}
  // Whether it looks at the outputs of this module at all.
  virtual bool Reads(const std::string& /*module*/) const { return true; }
};

}  // namespace trainwreck
