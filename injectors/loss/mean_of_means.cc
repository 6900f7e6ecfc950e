// loss.mean_of_means: micro-batches, and ranks, that count alike though they differ in what their
// losses are means over. With lengths that differ, short answers then weigh more than long ones.
#include <utility>

#include "injectors/injector.h"
#include "injectors/loss/scaler_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "loss.mean_of_means",
          .doc =
              "Averages the means of micro-batches and ranks, where the mean of all their "
              "targets was meant.",
          .has_trigger = false,
          .evidence = "once: what a micro-batch counts by, its targets before and nothing after"};
}

class AlikeScaler : public ScalerAround {
 public:
  using ScalerAround::ScalerAround;
  double Weigh(double count) const override { return count > 0 ? 1 : 0; }
};

class MeanOfMeans : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> scaler) override {
    Fired({{"before", "targets"}, {"after", "alike"}});
    return std::make_unique<AlikeScaler>(std::move(scaler));
  }
};

REGISTER_FAULT(Info, MeanOfMeans);

}  // namespace
}  // namespace trainwreck
