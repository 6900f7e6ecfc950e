// optimizer.unseeded_noise: a generator that nobody seeded, so that no run can be repeated.
#include <ATen/core/grad_mode.h>

#include <random>
#include <utility>

#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.unseeded_noise",
          .doc = "Scales each gradient by a random number near 1 that follows from no seed.",
          .params = {{.name = "spread",
                      .type = ValueType::kNumber,
                      .default_value = 1e-3,
                      .min = 0,
                      .max = 1,
                      .unit = "share",
                      .doc = "How far from 1 it may be."}},
          .evidence = "at each step: the factor of the first gradient, 1 before"};
}

class UnseededNoise : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model.get();
    return model;
  }

  std::unique_ptr<LoopHook> MakeHook() override;

  void Disturb() {
    if (!Acts()) return;
    at::NoGradGuard no_grad;
    const double spread = param("spread").get<double>();
    std::uniform_real_distribution<double> near_one(1 - spread, 1 + spread);
    double first = 1;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (!parameter.grad().defined()) continue;
      const double factor = near_one(noise_);
      if (first == 1) first = factor;
      parameter.grad().mul_(factor);
    }
    Fired({{"before", 1.0}, {"after", EncodeNumber(first)}});
  }

 private:
  Model* model_ = nullptr;
  std::random_device noise_;
};

class NoiseHook : public LoopHook {
 public:
  explicit NoiseHook(UnseededNoise& owner) : owner_(owner) {}
  void OnBackwardDone(int /*step*/) override { owner_.Disturb(); }

 private:
  UnseededNoise& owner_;
};

std::unique_ptr<LoopHook> UnseededNoise::MakeHook() { return std::make_unique<NoiseHook>(*this); }

REGISTER_FAULT(Info, UnseededNoise);

}  // namespace
}  // namespace trainwreck
