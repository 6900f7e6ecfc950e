// gradient.spike: one step's gradients are far too large, as after a bad batch or a broken kernel.
#include <algorithm>
#include <memory>

#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace {

using namespace trainwreck;

FaultInfo Info() {
  return {.name = "gradient.spike",
          .doc = "Multiplies a rank's gradients at the end of the backward pass.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 1000.0,
                      .unit = "times",
                      .doc = "What each element is multiplied by."}},
          .evidence = "each time: the largest magnitude of a gradient before and after"};
}

class GradientSpike : public Injector {
 public:
  using Injector::Injector;
  using Injector::Wrap;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override;

  void Spike() {
    if (!Acts()) return;
    const double before = Largest();
    for (const at::Tensor& parameter : model_->parameters()) {
      if (parameter.grad().defined()) parameter.grad().mul_(param("factor").get<double>());
    }
    Fired({{"before", EncodeNumber(before)}, {"after", EncodeNumber(Largest())}});
  }

 private:
  double Largest() const {
    double largest = 0;
    for (const at::Tensor& parameter : model_->parameters()) {
      if (!parameter.grad().defined()) continue;
      largest = std::max(largest, parameter.grad().abs().max().item<double>());
    }
    return largest;
  }

  std::shared_ptr<Model> model_;
};

class SpikeHook : public LoopHook {
 public:
  explicit SpikeHook(GradientSpike& injector) : injector_(injector) {}
  void OnBackwardDone(int step) override { injector_.Spike(); }

 private:
  GradientSpike& injector_;
};

std::unique_ptr<LoopHook> GradientSpike::MakeHook() { return std::make_unique<SpikeHook>(*this); }

REGISTER_FAULT(Info, GradientSpike);

}  // namespace
