// model.recompute_without_autocast: activation checkpointing whose second pass runs in the backward
// pass's precision, and not in that of the first.
#include <utility>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"
#include "trainer/models/precision.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.recompute_without_autocast",
          .doc =
              "Lets the second pass of activation checkpointing run outside of autocast: the "
              "gradient is then that of another loss, computed in fp32.",
          .evidence =
              "at the first such pass: the type that autocast has before, and none after. "
              "Nothing where no part is computed again, or in fp32 anyway."};
}

class RecomputeWithoutAutocast : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    ForLayers<Recomputation>(*model, [this](Recomputation& recomputation) {
      recomputation.set_remember([this](c10::Device device) {
        return Acts() ? GeneratorAlone(device) : RememberBoth(device);
      });
    });
    return model;
  }

 private:
  Surround GeneratorAlone(c10::Device device) {
    const Autocast first = Autocast::Current(device.type());
    return [this, first, generator = RememberGenerator(device)] {
      if (first.dtype && !std::exchange(fired_, true)) {
        Fired({{"before", c10::toString(*first.dtype)}, {"after", "none"}});
      }
      return generator();
    };
  }

  bool fired_ = false;
};

REGISTER_FAULT(Info, RecomputeWithoutAutocast);

}  // namespace
}  // namespace trainwreck
