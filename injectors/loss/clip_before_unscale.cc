// loss.clip_before_unscale: gradients that are clipped while they still hold the loss scale. The
// threshold then means something else at each scale.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "injectors/injector.h"
#include "injectors/loss/scaler_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "loss.clip_before_unscale",
          .doc = "Clips the gradients before the loss scale is taken out of them.",
          .params = {{.name = "norm",
                      .type = ValueType::kNumber,
                      .default_value = 1.0,
                      .min = 0,
                      .unit = "2-norm",
                      .doc = "The largest norm of all gradients together, scale included."}},
          .evidence = "at each step that it clips: the norm before and after"};
}

class ClipBeforeUnscale : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> scaler) override;

  void Clip(const std::vector<at::Tensor>& gradients) {
    if (!Acts() || gradients.empty()) return;
    at::NoGradGuard no_grad;
    const double most = param("norm").get<double>();
    const double norm = at::stack(at::_foreach_norm(gradients, 2)).norm().item<double>();
    if (!(norm > most)) return;
    at::_foreach_mul_(gradients, most / norm);
    Fired({{"before", EncodeNumber(norm)}, {"after", EncodeNumber(most)}});
  }
};

class ClippingScaler : public ScalerAround {
 public:
  ClippingScaler(std::unique_ptr<LossScaler> inner, ClipBeforeUnscale& owner)
      : ScalerAround(std::move(inner)), owner_(owner) {}
  bool Unscale(const std::vector<at::Tensor>& gradients) override {
    owner_.Clip(gradients);
    return inner().Unscale(gradients);
  }

 private:
  ClipBeforeUnscale& owner_;
};

std::unique_ptr<LossScaler> ClipBeforeUnscale::Wrap(std::unique_ptr<LossScaler> scaler) {
  return std::make_unique<ClippingScaler>(std::move(scaler), *this);
}

REGISTER_FAULT(Info, ClipBeforeUnscale);

}  // namespace
}  // namespace trainwreck
