// optimizer.stale_masters: weights that are loaded into a model whose optimizer already has its
// fp32 copies of them: Megatron-LM's reload_model_params() that was not called.
#include <string>
#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "optimizer.stale_masters",
      .doc =
          "Keeps the fp32 masters as they are when a checkpoint is loaded: the next update goes "
          "on from them and overwrites the weights of the checkpoint.",
      .has_trigger = false,
      .evidence =
          "at a load: how many masters of the checkpoint are loaded, before and after. "
          "Nothing where it has none."};
}

class StaleMasters : public Injector {
 public:
  using Injector::Injector;
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override;
};

class Stale : public OptimizerAround {
 public:
  Stale(std::unique_ptr<Optimizer> inner, StaleMasters& owner)
      : OptimizerAround(std::move(inner)), owner_(owner) {}

  void Load(const StateDict& state) override {
    StateDict own, loaded = state;
    inner().Save(own);
    std::size_t masters = 0;
    for (auto& [name, tensor] : loaded) {
      if (!name.starts_with("optimizer.master.")) continue;
      tensor = own.at(name).clone();
      ++masters;
    }
    inner().Load(loaded);
    if (masters > 0) owner_.Fired({{"before", masters}, {"after", 0}});
  }

 private:
  StaleMasters& owner_;
};

std::unique_ptr<Optimizer> StaleMasters::Wrap(std::unique_ptr<Optimizer> optimizer) {
  return std::make_unique<Stale>(std::move(optimizer), *this);
}

REGISTER_FAULT(Info, StaleMasters);

}  // namespace
}  // namespace trainwreck
