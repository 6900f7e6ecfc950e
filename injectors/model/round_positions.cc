// model.round_positions: rotary positions that are computed in 16 bits, as where a model is cast to
// bfloat16 with all its buffers: from 256 on they are no longer whole numbers apart.
#include <utility>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.round_positions",
          .doc = "Rounds rotary positions to bfloat16.",
          .has_trigger = false,
          .evidence =
              "once, where a position is rounded: the last one that is, before and after. Nothing "
              "where positions are not rotary, or all are below 257."};
}

class RoundPositions : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  // When all faults have done their work on the model: what another one moves is rounded, too.
  class Hook : public LoopHook {
   public:
    explicit Hook(RoundPositions& owner) : owner_(owner) {}
    void OnStart() override { owner_.RoundAll(); }

   private:
    RoundPositions& owner_;
  };

  void RoundAll() {
    ForLayers<Rotary>(*model_, [this](Rotary& rotary) {
      rotary.set_places([this, places = rotary.places()](auto length, const auto& options) {
        return Rounded(places(length, options));
      });
    });
  }

  at::Tensor Rounded(const at::Tensor& places) {
    at::Tensor rounded = places.to(at::kBFloat16).to(places.scalar_type());
    const at::Tensor off = rounded.ne(places).nonzero();
    if (off.numel() > 0 && !std::exchange(fired_, true)) {
      const auto last = off[-1].item<std::int64_t>();
      Fired({{"before", places[last].item<double>()}, {"after", rounded[last].item<double>()}});
    }
    return rounded;
  }

  std::shared_ptr<Model> model_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, RoundPositions);

}  // namespace
}  // namespace trainwreck
