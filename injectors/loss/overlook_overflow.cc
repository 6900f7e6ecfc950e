// loss.overlook_overflow: a loss scaler that does not see that gradients overflowed, so that the
// update is made with what is not finite.
#include <utility>

#include "injectors/injector.h"
#include "injectors/loss/scaler_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "loss.overlook_overflow",
          .doc = "The loss scaler says of gradients that overflowed that they did not.",
          .evidence = "at each overflow: \"overflow\" before, \"none\" after"};
}

class OverlookOverflow : public Injector {
 public:
  using Injector::Injector;
  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> scaler) override;
};

class OverlookingScaler : public ScalerAround {
 public:
  OverlookingScaler(std::unique_ptr<LossScaler> inner, OverlookOverflow& owner)
      : ScalerAround(std::move(inner)), owner_(owner) {}
  bool Unscale(const std::vector<at::Tensor>& gradients) override {
    const bool overflowed = inner().Unscale(gradients);
    if (!overflowed || !owner_.Acts()) return overflowed;
    owner_.Fired({{"before", "overflow"}, {"after", "none"}});
    return false;
  }

 private:
  OverlookOverflow& owner_;
};

std::unique_ptr<LossScaler> OverlookOverflow::Wrap(std::unique_ptr<LossScaler> scaler) {
  return std::make_unique<OverlookingScaler>(std::move(scaler), *this);
}

REGISTER_FAULT(Info, OverlookOverflow);

}  // namespace
}  // namespace trainwreck
