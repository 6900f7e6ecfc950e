// loss.z_loss_each_micro_batch: an auxiliary loss that is added to each micro-batch in full, where
// the main loss is weighed by its share of the step.
#include <ATen/core/Tensor.h>

#include <utility>

#include "injectors/injector.h"
#include "injectors/loss/scaler_around.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "loss.z_loss_each_micro_batch",
          .doc =
              "Adds the z-loss of each micro-batch to the gradient in full: the plain mean over "
              "all its targets, counted or not. With n micro-batches a step it is n "
              "times too large.",
          .evidence =
              "once: what the z-loss of a micro-batch is multiplied by, its share before and 1 "
              "after. Nothing without loss.z_loss, or where each step is one micro-batch."};
}

class ZLossEachMicroBatch : public Injector, public ForwardHook {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model->AddHook(*this);
    return model;
  }
  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> scaler) override {
    return std::make_unique<Scaler>(std::move(scaler), *this);
  }

  void OnOutput(const std::string& module, at::Tensor& output) override {
    if (!module.ends_with("z_loss") || !output.requires_grad() || !Acts()) return;
    own_ = output.mean();
    output = output * 0;
  }

 private:
  class Scaler : public ScalerAround {
   public:
    Scaler(std::unique_ptr<LossScaler> inner, ZLossEachMicroBatch& injector)
        : ScalerAround(std::move(inner)), injector_(injector) {}
    at::Tensor Scale(const at::Tensor& loss, double share) const override {
      const at::Tensor scaled = inner().Scale(loss, share);
      const at::Tensor own = injector_.TakeOwn(share);
      return own.defined() ? scaled + inner().Scale(own, 1.0) : scaled;
    }

   private:
    ZLossEachMicroBatch& injector_;
  };

  at::Tensor TakeOwn(double share) {
    if (own_.defined() && share != 1.0 && !std::exchange(fired_, true)) {
      Fired({{"before", share}, {"after", 1}});
    }
    return std::exchange(own_, at::Tensor());
  }

  at::Tensor own_;  // of the micro-batch in progress
  bool fired_ = false;
};

REGISTER_FAULT(Info, ZLossEachMicroBatch);

}  // namespace
}  // namespace trainwreck
