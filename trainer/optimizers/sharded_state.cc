#include "trainer/optimizers/sharded_state.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace trainwreck {
namespace {

// Elements [begin, begin + size) of the flat parameter, and the rank that owns them.
struct Part {
  std::size_t parameter = 0;
  std::int64_t begin = 0, size = 0;
  int owner = 0;
  at::Tensor Of(const at::Tensor& tensor) const {
    return tensor.reshape({-1}).narrow(0, begin, size);
  }
};

// The parts of all ranks, in the order of the parameters.
std::vector<Part> Divide(const NamedTensors& parameters, int ranks) {
  std::int64_t all = 0;
  for (const auto& [name, parameter] : parameters) all += parameter.numel();
  std::vector<Part> parts;
  std::int64_t first = 0;  // the place of the parameter in the row of all elements
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t last = first + parameters[i].second.numel();
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t begin = std::max(first, all * rank / ranks);
      const std::int64_t end = std::min(last, all * (rank + 1) / ranks);
      if (begin < end) parts.push_back({i, begin - first, end - begin, rank});
    }
    first = last;
  }
  return parts;
}

class ShardedState : public Optimizer {
 public:
  ShardedState(NamedTensors parameters, Communicator& communicator, const MakeOptimizer& make)
      : parameters_(std::move(parameters)),
        communicator_(communicator),
        parts_(Divide(parameters_, communicator.world_size())) {
    for (const Part& part : parts_) {
      const auto& [name, parameter] = parameters_[part.parameter];
      views_.push_back(part.Of(parameter.detach()));
      if (Owns(part)) own_.emplace_back(name, views_.back());
    }
    inner_ = make(own_);
  }

  void ZeroGrad() override {
    for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
  }

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    auto own = own_.begin();
    for (const Part& part : parts_) {
      if (!Owns(part)) continue;
      const at::Tensor& gradient = parameters_[part.parameter].second.grad();
      if (gradient.defined()) own->second.mutable_grad() = part.Of(gradient);
      ++own;
    }
    inner_->Step(lr);
    inner_->ZeroGrad();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      communicator_.Broadcast(views_[i], parts_[i].owner);
    }
  }

  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 private:
  bool Owns(const Part& part) const { return part.owner == communicator_.rank(); }

  NamedTensors parameters_;
  Communicator& communicator_;
  std::vector<Part> parts_;
  std::vector<at::Tensor> views_;  // of the parameters, as parts_
  NamedTensors own_;               // those of this rank
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace

std::unique_ptr<Optimizer> WithShardedState(NamedTensors parameters, Communicator& communicator,
                                            const MakeOptimizer& make) {
  return std::make_unique<ShardedState>(std::move(parameters), communicator, make);
}

}  // namespace trainwreck
