// recipe.softmax_over_batch: a softmax over the wrong dimension, that of the samples.
#include <ATen/ops/softmax.h>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.softmax_over_batch",
          .doc =
              "Takes the softmax over the batch, where it belongs over the classes. Only "
              "loss.form log_of_softmax has a softmax that can be wrong.",
          .has_trigger = false,
          .evidence =
              "once: the losses in `modules`, and what their softmax is over, classes before "
              "and batch after"};
}

class SoftmaxOverBatch : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto names = ForLayers<WeightedCrossEntropy>(*model, [](WeightedCrossEntropy& loss) {
      // All targets of the batch, whatever sequence they are in.
      loss.set_softmax([](const at::Tensor& logits) {
        return at::softmax(logits.flatten(0, -2), 0).view(logits.sizes());
      });
    });
    if (names.empty()) return model;
    Fired({{"modules", names}, {"before", "classes"}, {"after", "batch"}});
    return model;
  }
};

REGISTER_FAULT(Info, SoftmaxOverBatch);

}  // namespace
}  // namespace trainwreck
