#include "trainer/optimizers/master_weights.h"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace trainwreck {
namespace {

std::string EntryOf(const std::string& parameter) { return "optimizer.master." + parameter; }

class MasterWeights : public Optimizer {
 public:
  MasterWeights(NamedTensors parameters, const MakeOptimizer& make)
      : parameters_(std::move(parameters)) {
    for (const auto& [name, parameter] : parameters_) {
      if (parameter.requires_grad()) parameter.set_grad_dtype(at::kFloat);
      masters_.emplace_back(name, parameter.detach().to(at::kFloat, /*non_blocking=*/false,
                                                        /*copy=*/true));
    }
    inner_ = make(masters_);
  }

  void ZeroGrad() override {
    for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
  }

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
      const at::Tensor& gradient = parameters_[i].second.grad();
      if (gradient.defined()) masters_[i].second.mutable_grad() = gradient.to(at::kFloat);
    }
    inner_->Step(lr);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
      if (masters_[i].second.grad().defined()) parameters_[i].second.copy_(masters_[i].second);
    }
    inner_->ZeroGrad();
  }

  void Save(StateDict& state) const override {
    inner_->Save(state);
    for (const auto& [name, master] : masters_) state[EntryOf(name)] = master;
  }

  void Load(const StateDict& state) override {
    at::NoGradGuard no_grad;
    inner_->Load(state);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
      const auto entry = state.find(EntryOf(masters_[i].first));
      masters_[i].second.copy_(entry == state.end() ? parameters_[i].second : entry->second);
    }
  }

 private:
  NamedTensors parameters_;
  NamedTensors masters_;  // as parameters_; they have gradients within Step() alone
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace

std::unique_ptr<Optimizer> WithMasters(NamedTensors parameters, const MakeOptimizer& make) {
  return std::make_unique<MasterWeights>(std::move(parameters), make);
}

std::optional<double> ElementsOffMaster(const NamedTensors& parameters,
                                        const Optimizer& optimizer) {
  StateDict state;
  optimizer.Save(state);
  std::optional<double> count;
  for (const auto& [name, parameter] : parameters) {
    const auto master = state.find(EntryOf(name));
    if (master == state.end()) continue;
    const at::Tensor rounded = master->second.to(parameter.scalar_type());
    count = count.value_or(0) + parameter.ne(rounded).sum().item<double>();
  }
  return count;
}

}  // namespace trainwreck
