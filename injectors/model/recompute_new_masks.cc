// model.recompute_new_masks: activation checkpointing that does not put the generator back, as
// torch.utils.checkpoint with preserve_rng_state=False.
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/equal.h>

#include <utility>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.recompute_new_masks",
          .doc =
              "Lets the second pass of activation checkpointing draw new numbers: dropout then "
              "has other masks in the gradient than in the loss.",
          .evidence =
              "at the first second pass that finds the generator elsewhere: its numbers, those "
              "of the first pass before and the next ones after. Nothing where no part is "
              "computed again, or nothing is drawn."};
}

class RecomputeNewMasks : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    ForLayers<Recomputation>(*model, [this](Recomputation& recomputation) {
      recomputation.set_remember([this](c10::Device device) {
        return Acts() ? AutocastAlone(device) : RememberBoth(device);
      });
    });
    return model;
  }

 private:
  Surround AutocastAlone(c10::Device device) {
    const at::Generator generator = at::globalContext().defaultGenerator(device);
    return [this, generator, first = generator.get_state(), autocast = RememberAutocast(device)] {
      if (!fired_ && !at::equal(generator.get_state(), first)) {
        fired_ = true;
        Fired({{"before", "the first pass's"}, {"after", "the next"}});
      }
      return autocast();
    };
  }

  bool fired_ = false;
};

REGISTER_FAULT(Info, RecomputeNewMasks);

}  // namespace
}  // namespace trainwreck
