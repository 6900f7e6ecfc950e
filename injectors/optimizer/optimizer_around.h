// An optimizer around another one, with something done before and after each of its steps.
#pragma once

#include <memory>
#include <utility>

#include "trainer/parts.h"

namespace trainwreck {

class OptimizerAround : public Optimizer {
 public:
  explicit OptimizerAround(std::unique_ptr<Optimizer> inner) : inner_(std::move(inner)) {}
  void ZeroGrad() override { inner_->ZeroGrad(); }
  void Step(double lr) override {
    Before(lr);
    inner_->Step(lr);
    After();
  }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 protected:
  virtual void Before(double lr) {}
  virtual void After() {}

 private:
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace trainwreck
