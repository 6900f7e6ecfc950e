// loss.softmax_in_16_bits: a softmax of logits in 16 bits that is computed in 16 bits, too, as when
// the loss is inside what runs with automatic mixed precision.
#include <ATen/ops/softmax.h>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "loss.softmax_in_16_bits",
          .doc =
              "Computes the softmax of the loss in bf16, where fp32 belongs. Only loss.form "
              "log_of_softmax has a softmax that can be wrong.",
          .has_trigger = false,
          .evidence =
              "once: the losses in `modules`, and the format of their softmax, fp32 before and "
              "bf16 after"};
}

at::Tensor SoftmaxOfRounded(const at::Tensor& logits) {
  return at::softmax(logits.to(at::kBFloat16), -1).to(logits.scalar_type());
}

class SoftmaxIn16Bits : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto names = ForLayers<WeightedCrossEntropy>(
        *model, [](WeightedCrossEntropy& loss) { loss.set_softmax(SoftmaxOfRounded); });
    if (names.empty()) return model;
    Fired({{"modules", names}, {"before", "fp32"}, {"after", "bf16"}});
    return model;
  }
};

REGISTER_FAULT(Info, SoftmaxIn16Bits);

}  // namespace
}  // namespace trainwreck
