#include "trainer/optimizers/in_backward.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <string>
#include <utility>
#include <vector>

namespace trainwreck {
namespace {

namespace autograd = torch::autograd::impl;

class CallReady : public torch::autograd::PostAccumulateGradHook {
 public:
  CallReady(GradientHooks::Ready ready, std::size_t parameter)
      : ready_(std::move(ready)), parameter_(parameter) {}
  void operator()(const at::Tensor&) override { ready_(parameter_); }

 private:
  GradientHooks::Ready ready_;
  std::size_t parameter_;
};

class ForEach : public Optimizer {
 public:
  ForEach(const NamedTensors& parameters, const MakeOptimizer& make) {
    for (const auto& one : parameters) {
      each_.push_back({.name = one.first, .parameter = one.second, .optimizer = make({one})});
    }
  }

  void ZeroGrad() override {
    for (Each& each : each_) each.optimizer->ZeroGrad();
  }

  void Step(double lr) override {
    for (Each& each : each_) {
      if (each.parameter.grad().defined()) each.optimizer->Step(lr);
    }
  }

  void Save(StateDict& state) const override {
    for (const Each& each : each_) {
      StateDict own;
      each.optimizer->Save(own);
      Rename(own, kStep, each.StepEntry());
      state.merge(own);
    }
  }

  void Load(const StateDict& state) override {
    for (Each& each : each_) {
      StateDict own = state;
      Rename(own, each.StepEntry(), kStep);
      each.optimizer->Load(own);
    }
  }

 private:
  static constexpr const char* kStep = "optimizer.step";  // the one entry of no parameter

  struct Each {
    std::string name;
    at::Tensor parameter;
    std::unique_ptr<Optimizer> optimizer;
    std::string StepEntry() const { return std::string(kStep) + "." + name; }
  };

  static void Rename(StateDict& state, const std::string& from, const std::string& to) {
    auto entry = state.extract(from);
    if (entry.empty()) return;
    entry.key() = to;
    state.erase(to);
    state.insert(std::move(entry));
  }

  std::vector<Each> each_;
};

}  // namespace

GradientHooks::GradientHooks(NamedTensors parameters, const Ready& ready)
    : parameters_(std::move(parameters)) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].second;
    if (!parameter.requires_grad()) continue;
    autograd::set_post_acc_grad_hooks(parameter, std::make_unique<CallReady>(ready, i));
  }
}

GradientHooks::~GradientHooks() {
  for (const auto& [name, parameter] : parameters_) {
    if (parameter.requires_grad()) autograd::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

bool GradientHooks::IsOn(const at::Tensor& parameter) {
  return autograd::post_acc_grad_hooks(parameter) != nullptr;
}

std::unique_ptr<Optimizer> OptimizerForEach(const NamedTensors& parameters,
                                            const MakeOptimizer& make) {
  return std::make_unique<ForEach>(parameters, make);
}

}  // namespace trainwreck
