// optimizer.unseeded_noise: a generator that nobody seeded, so that no run can be repeated.
#include <random>

#include "injectors/optimizer/gradient_fault.h"

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

class UnseededNoise : public GradientFault {
 public:
  using GradientFault::GradientFault;

 private:
  void Change(const NamedTensors& parameters) override {
    const double spread = param("spread").get<double>();
    std::uniform_real_distribution<double> near_one(1 - spread, 1 + spread);
    double first = 1;
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      const double factor = near_one(noise_);
      if (first == 1) first = factor;
      parameter.grad().mul_(factor);
    }
    Fired({{"before", 1.0}, {"after", EncodeNumber(first)}});
  }

  std::random_device noise_;
};

REGISTER_FAULT(Info, UnseededNoise);

}  // namespace
}  // namespace trainwreck
