// recipe.summed_micro_batches: accumulation that forgets to divide by the number of micro-batches.
#include <utility>

#include "injectors/injector.h"
#include "injectors/loss/scaler_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.summed_micro_batches",
          .doc = "Adds up the losses of a step's micro-batches, where their mean was meant.",
          .has_trigger = false,
          .evidence = "once: what a step's gradients are of, the mean before and the sum after"};
}

class SummingScaler : public ScalerAround {
 public:
  using ScalerAround::ScalerAround;
  at::Tensor Scale(const at::Tensor& loss, double /*share*/) const override {
    return inner().Scale(loss, /*share=*/1);
  }
};

class SummedMicroBatches : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> scaler) override {
    Fired({{"before", "mean"}, {"after", "sum"}});
    return std::make_unique<SummingScaler>(std::move(scaler));
  }
};

REGISTER_FAULT(Info, SummedMicroBatches);

}  // namespace
}  // namespace trainwreck
