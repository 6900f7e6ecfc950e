// The base of a model's modules, and the model as a part of the loop. It is separate from parts.h
// because torch::nn::Module is slow to compile: include it only where a Model is used.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/models/forward_hook.h"
#include "trainer/parts.h"

namespace trainwreck {

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
  friend class Section;
  std::string path_;
  const std::vector<ForwardHook*>* hooks_ = nullptr;
};

// A layer that announces its beginning as well: Forward() begins with Begin(). Its parameters may
// be elsewhere between its passes (trainer/ranks/divided_parameters.h), so none but its own
// Forward() uses them.
class Section : public Layer {
 protected:
  void Begin() const {
    if (hooks_ == nullptr) return;
    for (ForwardHook* hook : *hooks_) hook->OnBegin(path_);
  }
};

// A module whose Layers, at any depth, announce to the hooks added here.
class HookedModule : public torch::nn::Module {
 public:
  // Adds and removes a hook. Hooks see an output in the order in which they were added, and must
  // live until they are removed. A module around another one passes both calls on.
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

// Elements of the module's matrices, those of the modules in it among them.
double MatrixElements(const torch::nn::Module& module);

class Model : public HookedModule {
 public:
  // Weighted mean loss over the batch's targets, in nats; a scalar with a graph.
  virtual at::Tensor Loss(const Batch& batch) = 0;
  // The logits [batch, length, classes] for tokens [batch, length], of any length up to the data's.
  // Free running needs them; models without free running throw std::runtime_error.
  virtual at::Tensor Logits(const at::Tensor& /*tokens*/) {
    throw std::runtime_error("this model.kind has no logits to go on from");
  }
  // Floating-point operations of a forward pass over the batch that the model itself asks for: two
  // for each target and element of a matrix that its input is multiplied by. A model with other
  // products, or with tables that are only looked up, says so.
  virtual double ForwardFlops(const Batch& batch) const;
};

}  // namespace trainwreck
