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
#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

namespace trainwreck {

class ForwardHook {
 public:
  virtual ~ForwardHook() = default;
  // `module` is its path in the model; `output` is part of the graph. To change what follows,
  // assign another tensor; writing into this one may break the backward pass. Called in
  // evaluations, and again in a backward pass that recomputes activations, too.
  virtual void OnOutput(const std::string& module, at::Tensor& output) = 0;
};

// A module that announces its output: Forward() ends in `return Announce(y)`.
class Layer : public torch::nn::Module {
 protected:
  at::Tensor Announce(at::Tensor output) const {
    if (hooks_ != nullptr) {
      for (ForwardHook* hook : *hooks_) hook->OnOutput(path_, output);
    }
    return output;
  }

 private:
  friend class HookedModule;
  std::string path_;
  const std::vector<ForwardHook*>* hooks_ = nullptr;
};

// A module whose Layers, at any depth, announce to the hooks added here.
class HookedModule : public torch::nn::Module {
 public:
  // Hooks see an output in the order in which they were added; they must outlive their time here. A
  // module around another one passes both calls on.
  virtual void AddHook(ForwardHook& hook);
  virtual void RemoveHook(ForwardHook& hook);
  // Whether any hook was ever added.
  bool was_hooked() const { return wired_; }

 private:
  std::vector<ForwardHook*> hooks_;
  bool wired_ = false;
};

// Adds a hook for as long as the scope lives; null: none.
class HookScope {
 public:
  HookScope(HookedModule& module, ForwardHook* hook) : module_(module), hook_(hook) {
    if (hook_ != nullptr) module_.AddHook(*hook_);
  }
  ~HookScope() {
    if (hook_ != nullptr) module_.RemoveHook(*hook_);
  }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

 private:
  HookedModule& module_;
  ForwardHook* hook_;
};

}  // namespace trainwreck
