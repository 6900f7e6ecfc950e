#include "trainer/optimizers/optimizers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "trainer/optimizers/block_codes.h"
#include "trainer/optimizers/disk_tensor.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

// Elements of a parameter that are updated at once where state is in codes or in files: whole
// blocks.
constexpr std::int64_t kPiece = 64 * kCodesPerBlock;

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
                at::ScalarType state_dtype, Offload offload)
      : parameters_(std::move(parameters)), state_dtype_(state_dtype), offload_(offload) {
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
    for (const Slot& slot : slots_) {
      for (std::size_t i = 0; i < slot.values.size(); ++i) {
        state[EntryName(slot.kind, i)] = slot.values[i];
        if (in_codes()) state[EntryName(slot.kind + "_scales", i)] = slot.scales[i];
      }
    }
  }

  void Load(const StateDict& state) override {
    at::NoGradGuard no_grad;
    for (Slot& slot : slots_) {
      for (std::size_t i = 0; i < slot.values.size(); ++i) {
        LoadEntry(state, EntryName(slot.kind, i), slot.values[i]);
        if (in_codes()) LoadEntry(state, EntryName(slot.kind + "_scales", i), slot.scales[i]);
      }
    }
  }

 protected:
  const NamedTensors& Parameters() const { return parameters_; }

  // Adds state of the parameters' shapes. `is_signed`: whether it can be negative.
  void AddSlot(const std::string& kind, bool is_signed) {
    Slot slot{.kind = kind, .values = {}, .scales = {}};
    if (in_codes()) slot.codes.emplace(is_signed);
    for (const auto& [name, parameter] : parameters_) {
      slot.values.push_back(NewState(parameter.sizes(), state_dtype_, parameter.device()));
      if (!in_codes()) continue;
      slot.scales.push_back(
          NewState({BlocksOf(parameter.numel())}, at::kFloat, parameter.device()));
    }
    slots_.push_back(std::move(slot));
  }

  // The active part of a group: parameters with a gradient, their gradients, and the slots' tensors
  // of the same parameters. All are in fp32: copies where fewer bits are kept.
  struct Active {
    std::vector<std::size_t> indices;
    std::vector<at::Tensor> parameters, gradients;
    std::vector<std::vector<at::Tensor>> slots;
  };
  // Calls `update` for what is active in the group, and keeps what it made of it: for all at once,
  // or, where state is in codes or in files, for one piece of a parameter after the other.
  void UpdateActive(const ParameterGroup& group, const std::function<void(Active&)>& update) {
    if (in_codes() || offload_ == Offload::kDisk) return UpdateInPieces(group, update);
    Active active = CollectActive(group);
    if (active.parameters.empty()) return;
    update(active);
    Keep(active);
  }

 private:
  struct Slot {
    std::string kind;
    std::vector<at::Tensor> values;  // as the parameters; codes where they are
    std::vector<at::Tensor> scales;  // of codes: those of each parameter's blocks
    std::optional<BlockCodes> codes = {};
  };

  bool in_codes() const { return state_dtype_ == at::kByte; }

  // Zeros, where the state is kept. On disk for parameters on a GPU: not run on a GPU yet.
  at::Tensor NewState(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device) const {
    if (offload_ == Offload::kDisk) return ZerosOnDisk(sizes, dtype);
    return at::zeros(sizes, at::TensorOptions().dtype(dtype).device(device));
  }

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
        active.slots[s].push_back(slots_[s].values[i].to(at::kFloat));
      }
    }
    return active;
  }
  void Keep(const Active& active) {
    for (std::size_t position = 0; position < active.indices.size(); ++position) {
      const std::size_t i = active.indices[position];
      Round(active.parameters[position], parameters_[i].second);
      for (std::size_t s = 0; s < slots_.size(); ++s) {
        Round(active.slots[s][position], slots_[s].values[i]);
      }
    }
  }

  void UpdateInPieces(const ParameterGroup& group, const std::function<void(Active&)>& update) {
    for (const std::size_t i : group.members) {
      const at::Tensor& parameter = parameters_[i].second;
      if (!parameter.grad().defined()) continue;
      for (std::int64_t begin = 0; begin < parameter.numel(); begin += kPiece) {
        UpdatePiece(i, begin, std::min(kPiece, parameter.numel() - begin), update);
      }
    }
  }
  void UpdatePiece(std::size_t i, std::int64_t begin, std::int64_t size,
                   const std::function<void(Active&)>& update) {
    const auto piece = [&](const at::Tensor& whole) {
      return whole.reshape({-1}).narrow(0, begin, size);
    };
    const auto scales = [&](const Slot& slot) {
      return slot.scales[i].narrow(0, begin / kCodesPerBlock, BlocksOf(size));
    };
    const auto kept = [&](const Slot& slot) {
      const at::Tensor values = piece(slot.values[i]);
      return slot.codes ? slot.codes->Decode(values, scales(slot)) : values;
    };
    at::Tensor parameter = piece(parameters_[i].second.detach());
    Active active{.indices = {i},
                  .parameters = {parameter.to(at::kFloat)},
                  .gradients = {piece(parameters_[i].second.grad()).to(at::kFloat)},
                  .slots = {}};
    for (const Slot& slot : slots_) {
      active.slots.push_back({kept(slot).to(parameter.device(), at::kFloat)});
    }
    update(active);
    Round(active.parameters[0], parameter);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      const Slot& slot = slots_[s];
      at::Tensor values = piece(slot.values[i]);
      if (slot.codes) {
        slot.codes->Encode(active.slots[s][0].to(values.device()), values, scales(slot));
      } else {
        Round(active.slots[s][0], values);
      }
    }
  }

  static void Round(const at::Tensor& computed, at::Tensor& kept) {
    if (!kept.is_alias_of(computed)) kept.copy_(computed);
  }

  std::string EntryName(const std::string& kind, std::size_t i) const {
    return "optimizer." + kind + "." + parameters_[i].first;
  }

  NamedTensors parameters_;
  at::ScalarType state_dtype_;
  Offload offload_;
  std::vector<Slot> slots_;
};

class Sgd : public BaseOptimizer {
 public:
  Sgd(NamedTensors parameters, SgdOptions options)
      : BaseOptimizer(std::move(parameters), options.weight_decay, options.no_decay,
                      options.state_dtype, options.offload),
        options_(std::move(options)) {
    if (options_.momentum > 0) AddSlot("momentum", /*is_signed=*/true);
  }

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      UpdateActive(groups_[g], [&](Active& active) {
        std::vector<at::Tensor> none;
        // The buffers begin at zero, so the first step needs no special case.
        at::_fused_sgd_(active.parameters, active.gradients,
                        active.slots.empty() ? none : active.slots[0], groups_[g].weight_decay,
                        options_.momentum, RateOf(g, lr),
                        /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false,
                        /*is_first_step=*/false);
      });
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
      UpdateActive(groups_[g], [&](Active& active) {
        for (std::size_t i = 0; i < active.parameters.size(); ++i) {
          const at::Tensor& parameter = active.parameters[i];
          at::Tensor direction = active.gradients[i].add(parameter, groups_[g].weight_decay);
          if (!active.slots.empty()) {
            direction = active.slots[0][i].mul_(options_.momentum).add_(direction);
          }
          parameter.sub_(direction, RateOf(g, lr));
        }
      });
    }
  }
};

class AdamW : public BaseOptimizer {
 public:
  AdamW(NamedTensors parameters, AdamWOptions options)
      : BaseOptimizer(std::move(parameters), options.weight_decay, options.no_decay,
                      options.state_dtype, options.offload),
        options_(std::move(options)),
        step_(ScalarBeside(Parameters())) {
    AddSlot("exp_avg", /*is_signed=*/true);
    AddSlot("exp_avg_sq", /*is_signed=*/false);
  }

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    step_.add_(1);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      UpdateActive(groups_[g], [&](Active& active) {
        const std::vector<at::Tensor> steps(active.parameters.size(), step_);
        at::_fused_adamw_(active.parameters, active.gradients, active.slots[0], active.slots[1],
                          /*max_exp_avg_sqs=*/{}, steps, RateOf(g, lr), options_.beta1,
                          options_.beta2, groups_[g].weight_decay, options_.eps,
                          /*amsgrad=*/false, /*maximize=*/false);
      });
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
      const double rate = RateOf(g, lr);
      UpdateActive(groups_[g], [&](Active& active) {
        for (std::size_t i = 0; i < active.parameters.size(); ++i) {
          const at::Tensor &parameter = active.parameters[i], &gradient = active.gradients[i];
          const at::Tensor &first = active.slots[0][i], &second = active.slots[1][i];
          parameter.mul_(1 - rate * groups_[g].weight_decay);
          first.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
          second.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
          const at::Tensor size = second.div(second_share).sqrt_().add_(options_.eps);
          parameter.addcdiv_(first, size, -rate / first_share);
        }
      });
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
