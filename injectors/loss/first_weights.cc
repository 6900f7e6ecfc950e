// loss.first_weights: one mask for a batch whose samples have their own, as a prompt length that
// was read from the first of them.
#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "loss.first_weights",
      .doc = "Weighs the targets of all samples of a batch as those of its first sample.",
      .has_trigger = false,
      .evidence = "once: the losses in `modules`, and whose weights they use, before and after"};
}

at::Tensor MeanByFirstWeights(const at::Tensor& nll, const at::Tensor& weights) {
  const at::Tensor first = weights.narrow(0, 0, 1).expand_as(nll);
  return (nll * first).sum() / first.sum();
}

class FirstWeights : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto names = ForLayers<WeightedCrossEntropy>(
        *model, [](WeightedCrossEntropy& loss) { loss.set_reduce(MeanByFirstWeights); });
    if (names.empty()) return model;
    Fired({{"modules", names}, {"before", "each sample's"}, {"after", "the first sample's"}});
    return model;
  }
};

REGISTER_FAULT(Info, FirstWeights);

}  // namespace
}  // namespace trainwreck
