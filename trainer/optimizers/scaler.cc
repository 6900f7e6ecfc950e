#include "trainer/optimizers/scaler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>

namespace trainwreck {
namespace {

class NoScaler : public LossScaler {
 public:
  double scale() const override { return 1.0; }
  bool skips_updates() const override { return false; }
  bool Unscale(const std::vector<at::Tensor>& /*gradients*/) override { return false; }
  void Update(bool overflowed) override {}
  void Save(StateDict& state) const override {}
  void Load(const StateDict& state) override {}
};

class StaticScaler : public LossScaler {
 public:
  StaticScaler(double scale, c10::Device device)
      : scale_(at::full({}, scale, at::TensorOptions(at::kFloat).device(device))), value_(scale) {}

  double scale() const override { return value_; }
  bool skips_updates() const override { return true; }

  bool Unscale(const std::vector<at::Tensor>& gradients) override {
    if (gradients.empty()) return false;
    at::NoGradGuard no_grad;
    at::Tensor found = at::zeros({}, scale_.options());
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, scale_.reciprocal());
    return found.item<float>() != 0;
  }

  void Update(bool overflowed) override {}

  void Save(StateDict& state) const override { state["scaler.scale"] = scale_; }
  void Load(const StateDict& state) override {
    LoadEntry(state, "scaler.scale", scale_);
    value_ = scale_.item<double>();
  }

 protected:
  static void LoadEntry(const StateDict& state, const std::string& name, at::Tensor& into) {
    at::NoGradGuard no_grad;
    if (auto entry = state.find(name); entry != state.end()) into.copy_(entry->second);
  }

  at::Tensor scale_;  // float
  double value_;      // of scale_: who asks for it must not wait for the device
};

class DynamicScaler : public StaticScaler {
 public:
  DynamicScaler(const ScalerRecipe& recipe, c10::Device device)
      : StaticScaler(recipe.init_scale, device),
        recipe_(recipe),
        good_steps_(at::zeros({}, at::TensorOptions(at::kInt).device(device))) {}

  void Update(bool overflowed) override {
    at::NoGradGuard no_grad;
    const at::Tensor found = at::full({}, overflowed ? 1.0 : 0.0, scale_.options());
    at::_amp_update_scale_(scale_, good_steps_, found, recipe_.growth_factor,
                           recipe_.backoff_factor, recipe_.growth_interval);
    value_ = scale_.item<double>();
  }

  void Save(StateDict& state) const override {
    StaticScaler::Save(state);
    state["scaler.good_steps"] = good_steps_;
  }
  void Load(const StateDict& state) override {
    StaticScaler::Load(state);
    LoadEntry(state, "scaler.good_steps", good_steps_);
    // The library asks whether the count equals the interval: past one that was made shorter since,
    // the scale would never grow again.
    at::NoGradGuard no_grad;
    good_steps_.clamp_max_(recipe_.growth_interval - 1);
  }

 private:
  ScalerRecipe recipe_;
  at::Tensor good_steps_;  // int32, since the last overflow or growth
};

}  // namespace

std::unique_ptr<LossScaler> MakeLossScaler(const ScalerRecipe& recipe, c10::Device device) {
  switch (recipe.kind) {
    case ScalerKind::kNone:
      return std::make_unique<NoScaler>();
    case ScalerKind::kStatic:
      return std::make_unique<StaticScaler>(recipe.init_scale, device);
    case ScalerKind::kDynamic:
      return std::make_unique<DynamicScaler>(recipe, device);
  }
  throw std::logic_error("no such scaler");
}

}  // namespace trainwreck
