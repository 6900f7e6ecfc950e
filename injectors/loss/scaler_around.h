// A loss scaler around another, which changes one thing.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

class ScalerAround : public LossScaler {
 public:
  explicit ScalerAround(std::unique_ptr<LossScaler> inner) : inner_(std::move(inner)) {}
  double Weigh(double count) const override { return inner_->Weigh(count); }
  at::Tensor Scale(const at::Tensor& loss, double share) const override {
    return inner_->Scale(loss, share);
  }
  double scale() const override { return inner_->scale(); }
  bool skips_updates() const override { return inner_->skips_updates(); }
  bool Unscale(const std::vector<at::Tensor>& gradients) override {
    return inner_->Unscale(gradients);
  }
  void Update(bool overflowed) override { inner_->Update(overflowed); }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 protected:
  LossScaler& inner() const { return *inner_; }

 private:
  std::unique_ptr<LossScaler> inner_;
};

}  // namespace trainwreck
