// loss.count_padding: a mean that divides by all places of a batch, also those that are left out of
// the sum. The loss then falls with the share of padding.
#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "loss.count_padding",
          .doc = "Divides the loss by the number of all targets, also of those with weight 0.",
          .has_trigger = false,
          .evidence = "once: the losses in `modules`, and what they divide by, before and after"};
}

at::Tensor MeanOverAll(const at::Tensor& nll, const at::Tensor& weights) {
  return (nll * weights).mean();
}

class CountPadding : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto names = ForLayers<WeightedCrossEntropy>(
        *model, [](WeightedCrossEntropy& loss) { loss.set_reduce(MeanOverAll); });
    if (names.empty()) return model;
    Fired({{"modules", names}, {"before", "weights"}, {"after", "targets"}});
    return model;
  }
};

REGISTER_FAULT(Info, CountPadding);

}  // namespace
}  // namespace trainwreck
