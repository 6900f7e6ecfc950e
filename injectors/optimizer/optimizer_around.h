// An optimizer around another, which changes one thing.
#pragma once

#include <memory>
#include <utility>

#include "trainer/parts.h"

namespace trainwreck {

class OptimizerAround : public Optimizer {
 public:
  explicit OptimizerAround(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}
  void ZeroGrad() override { inner_->ZeroGrad(); }
  void Step(double lr) override { inner_->Step(lr); }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 protected:
  Optimizer& inner() const { return *inner_; }

 private:
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace trainwreck
