#include "trainer/optimizers/optimizers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

std::vector<at::Tensor> ZerosLike(const NamedTensors& parameters, at::ScalarType dtype) {
  std::vector<at::Tensor> zeros;
  for (const auto& [name, parameter] : parameters) {
    zeros.push_back(at::zeros_like(parameter, parameter.options().dtype(dtype)));
  }
  return zeros;
}

// A zero where the parameters live: the fused kernels read their step count there.
at::Tensor ScalarBeside(const NamedTensors& parameters) {
  return at::zeros({}, parameters.empty() ? at::TensorOptions()
                                          : parameters.front().second.options().dtype(at::kFloat));
}

void LoadEntry(const StateDict& state, const std::string& name, at::Tensor& into) {
  if (auto entry = state.find(name); entry != state.end()) into.copy_(entry->second);
}

// What both rules share: the parameters, and state of their shapes.
class BaseOptimizer : public GroupedOptimizer {
 public:
  BaseOptimizer(NamedTensors parameters, double weight_decay, const std::string& no_decay,
                at::ScalarType state_dtype)
      : parameters_(std::move(parameters)), state_dtype_(state_dtype) {
    groups_ = {{.weight_decay = weight_decay}};
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const std::size_t group = AnyGlobMatches(no_decay, parameters_[i].first) ? 1 : 0;
      if (group == groups_.size()) groups_.push_back({.weight_decay = 0});
      groups_[group].members.push_back(i);
    }
  }

  void ZeroGrad() override {
    for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
  }

  void Save(StateDict& state) const override {
    for (const auto& [kind, tensors] : slots_) {
      for (std::size_t i = 0; i < tensors.size(); ++i) state[EntryName(kind, i)] = tensors[i];
    }
  }

  void Load(const StateDict& state) override {
    at::NoGradGuard no_grad;
    for (auto& [kind, tensors] : slots_) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        LoadEntry(state, EntryName(kind, i), tensors[i]);
      }
    }
  }

 protected:
  const NamedTensors& Parameters() const { return parameters_; }

  // Returns the index of a new slot.
  std::size_t AddSlot(const std::string& kind) {
    slots_.emplace_back(kind, ZerosLike(parameters_, state_dtype_));
    return slots_.size() - 1;
  }

  // The active part of a group: parameters with a gradient, their gradients, and the slots' tensors
  // of the same parameters. All are in fp32: copies where fewer bits are kept.
  struct Active {
    std::vector<std::size_t> indices;
    std::vector<at::Tensor> parameters, gradients;
    std::vector<std::vector<at::Tensor>> slots;
  };
  Active CollectActive(const ParameterGroup& group) const {
    Active active;
    active.slots.resize(slots_.size());
    for (const std::size_t i : group.members) {
      const at::Tensor& gradient = parameters_[i].second.grad();
      if (!gradient.defined()) continue;
      active.indices.push_back(i);
      active.parameters.push_back(parameters_[i].second.to(at::kFloat));
      active.gradients.push_back(gradient.to(at::kFloat));
      for (std::size_t s = 0; s < slots_.size(); ++s) {
        active.slots[s].push_back(slots_[s].second[i].to(at::kFloat));
      }
    }
    return active;
  }
  void Keep(const Active& active) {
    for (std::size_t position = 0; position < active.indices.size(); ++position) {
      const std::size_t i = active.indices[position];
      Round(active.parameters[position], parameters_[i].second);
      for (std::size_t s = 0; s < slots_.size(); ++s) {
        Round(active.slots[s][position], slots_[s].second[i]);
      }
    }
  }

 private:
  static void Round(const at::Tensor& computed, at::Tensor& kept) {
    if (!kept.is_same(computed)) kept.copy_(computed);
  }

  std::string EntryName(const std::string& kind, std::size_t i) const {
    return "optimizer." + kind + "." + parameters_[i].first;
  }

  NamedTensors parameters_;
  at::ScalarType state_dtype_;
  std::vector<std::pair<std::string, std::vector<at::Tensor>>> slots_;
};

class Sgd : public BaseOptimizer {
 public:
  Sgd(NamedTensors parameters, SgdOptions options)
      : BaseOptimizer(std::move(parameters), options.weight_decay, options.no_decay,
                      options.state_dtype),
        options_(std::move(options)) {
    if (options_.momentum > 0) AddSlot("momentum");
  }

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      Active active = CollectActive(groups_[g]);
      if (active.parameters.empty()) continue;
      std::vector<at::Tensor> none;
      // The buffers begin at zero, so the first step needs no special case.
      at::_fused_sgd_(active.parameters, active.gradients,
                      active.slots.empty() ? none : active.slots[0], groups_[g].weight_decay,
                      options_.momentum, RateOf(g, lr),
                      /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false,
                      /*is_first_step=*/false);
      Keep(active);
    }
  }

 protected:
  SgdOptions options_;
};

class PlainSgd : public Sgd {
 public:
  using Sgd::Sgd;

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Active active = CollectActive(groups_[g]);
      for (std::size_t i = 0; i < active.parameters.size(); ++i) {
        const at::Tensor& parameter = active.parameters[i];
        at::Tensor direction = active.gradients[i].add(parameter, groups_[g].weight_decay);
        if (!active.slots.empty()) {
          direction = active.slots[0][i].mul_(options_.momentum).add_(direction);
        }
        parameter.sub_(direction, RateOf(g, lr));
      }
      Keep(active);
    }
  }
};

class AdamW : public BaseOptimizer {
 public:
  AdamW(NamedTensors parameters, AdamWOptions options)
      : BaseOptimizer(std::move(parameters), options.weight_decay, options.no_decay,
                      options.state_dtype),
        options_(std::move(options)),
        step_(ScalarBeside(Parameters())) {
    AddSlot("exp_avg");
    AddSlot("exp_avg_sq");
  }

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    step_.add_(1);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      Active active = CollectActive(groups_[g]);
      if (active.parameters.empty()) continue;
      const std::vector<at::Tensor> steps(active.parameters.size(), step_);
      at::_fused_adamw_(active.parameters, active.gradients, active.slots[0], active.slots[1],
                        /*max_exp_avg_sqs=*/{}, steps, RateOf(g, lr), options_.beta1,
                        options_.beta2, groups_[g].weight_decay, options_.eps,
                        /*amsgrad=*/false, /*maximize=*/false);
      Keep(active);
    }
  }

  void Save(StateDict& state) const override {
    BaseOptimizer::Save(state);
    state["optimizer.step"] = step_;
  }

  void Load(const StateDict& state) override {
    BaseOptimizer::Load(state);
    LoadEntry(state, "optimizer.step", step_);
  }

 protected:
  AdamWOptions options_;
  at::Tensor step_;  // float, as the fused kernel wants it
};

class PlainAdamW : public AdamW {
 public:
  using AdamW::AdamW;

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    const double step = step_.add_(1).item<double>();
    const double first_share = 1 - std::pow(options_.beta1, step);
    const double second_share = 1 - std::pow(options_.beta2, step);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const Active active = CollectActive(groups_[g]);
      const double rate = RateOf(g, lr);
      for (std::size_t i = 0; i < active.parameters.size(); ++i) {
        const at::Tensor &parameter = active.parameters[i], &gradient = active.gradients[i];
        const at::Tensor &first = active.slots[0][i], &second = active.slots[1][i];
        parameter.mul_(1 - rate * groups_[g].weight_decay);
        first.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
        second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
        const at::Tensor size = second.div(second_share).sqrt_().add_(options_.eps);
        parameter.addcdiv_(first, size, -rate / first_share);
      }
      Keep(active);
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> MakeSgd(NamedTensors parameters, SgdOptions options) {
  if (options.form == UpdateForm::kPlain) {
    return std::make_unique<PlainSgd>(std::move(parameters), std::move(options));
  }
  return std::make_unique<Sgd>(std::move(parameters), std::move(options));
}

std::unique_ptr<Optimizer> MakeAdamW(NamedTensors parameters, AdamWOptions options) {
  if (options.form == UpdateForm::kPlain) {
    return std::make_unique<PlainAdamW>(std::move(parameters), std::move(options));
  }
  return std::make_unique<AdamW>(std::move(parameters), std::move(options));
}

}  // namespace trainwreck
