// Faults of a rank's own gradients: after its backward pass, before they are reduced over the
// ranks.
#pragma once

#include <ATen/core/grad_mode.h>

#include <memory>

#include "injectors/injector.h"

namespace trainwreck {

class GradientFault : public Injector {
 public:
  using Injector::Injector;
  using Injector::Wrap;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model.get();
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 protected:
  // Called at each step at which the trigger acts; some parameters may have no gradient.
  virtual void Change(const NamedTensors& parameters) = 0;

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(GradientFault& fault) : fault_(fault) {}
    void OnBackwardDone(int) override {
      at::NoGradGuard no_grad;
      if (fault_.Acts()) fault_.Change(ParametersOf(*fault_.model_));
    }

   private:
    GradientFault& fault_;
  };

  Model* model_ = nullptr;
};

}  // namespace trainwreck
