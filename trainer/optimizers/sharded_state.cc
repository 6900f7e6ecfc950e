#include "trainer/optimizers/sharded_state.h"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace trainwreck {
namespace {

class ShardedState : public Optimizer {
 public:
  ShardedState(const Division& division, Communicator* communicator, const MakeOptimizer& make)
      : division_(division), communicator_(communicator), inner_(make(division.own())) {
    if (communicator_ == nullptr) return;
    for (const OwnedPart& part : division_.parts()) {
      views_.push_back(part.Of(division_.parameters()[part.parameter].second.detach()));
    }
  }

  void ZeroGrad() override {
    for (const auto& [name, parameter] : division_.parameters()) parameter.mutable_grad().reset();
    inner_->ZeroGrad();
  }

  void Step(double lr) override {
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < division_.parts().size(); ++i) {
      const OwnedPart& part = division_.parts()[i];
      if (!division_.Owns(part)) continue;
      const at::Tensor& gradient = division_.parameters()[part.parameter].second.grad();
      if (!gradient.defined()) continue;
      division_.own()[division_.own_of(i)].second.mutable_grad() = part.Of(gradient);
    }
    inner_->Step(lr);
    for (std::size_t i = 0; i < views_.size(); ++i) {
      communicator_->Broadcast(views_[i], division_.parts()[i].owner);
    }
  }

  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 private:
  const Division& division_;
  Communicator* communicator_;
  std::vector<at::Tensor> views_;  // of the parameters that it hands out, as division_.parts()
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace

std::unique_ptr<Optimizer> WithShardedState(const Division& division, Communicator* communicator,
                                            const MakeOptimizer& make) {
  return std::make_unique<ShardedState>(division, communicator, make);
}

}  // namespace trainwreck
