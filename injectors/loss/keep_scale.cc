// loss.keep_scale: a dynamic loss scaler that is told only of the updates that were made, so that
// no overflow lowers its scale.
#include <utility>

#include "injectors/injector.h"
#include "injectors/loss/scaler_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "loss.keep_scale",
          .doc = "The loss scaler does not hear of an overflow: it keeps its scale.",
          .evidence = "at each overflow: \"lowered\" before, \"kept\" after"};
}

class KeepScale : public Injector {
 public:
  using Injector::Injector;
  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> scaler) override {
    return std::make_unique<Keeping>(std::move(scaler), *this);
  }

 private:
  class Keeping : public ScalerAround {
   public:
    Keeping(std::unique_ptr<LossScaler> inner, KeepScale& owner)
        : ScalerAround(std::move(inner)), owner_(owner) {}
    void Update(bool overflowed) override {
      if (!overflowed || !owner_.Acts()) return inner().Update(overflowed);
      owner_.Fired({{"before", "lowered"}, {"after", "kept"}});
    }

   private:
    KeepScale& owner_;
  };
};

REGISTER_FAULT(Info, KeepScale);

}  // namespace
}  // namespace trainwreck
