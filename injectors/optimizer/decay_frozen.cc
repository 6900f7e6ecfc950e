// optimizer.decay_frozen: weight decay that reaches parameters which do not train. Those that get a
// gradient of zeros, and not none, are decayed by optimizers that ask only whether there is one.
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "injectors/optimizer/update_fault.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.decay_frozen",
          .doc = "Decays the parameters that require no gradient, too.",
          .params = {{.name = "decay",
                      .type = ValueType::kNumber,
                      .default_value = 0.1,
                      .min = 0,
                      .unit = "1/rate",
                      .doc = "Times the rate of the step: the share that a parameter loses."}},
          .evidence =
              "at each step: the 2-norm of the frozen parameters, before and after. Nothing where "
              "none is frozen."};
}

class DecayFrozen : public UpdateFault {
 public:
  using UpdateFault::UpdateFault;

 private:
  void Update(Optimizer& optimizer, double lr) override {
    optimizer.Step(lr);
    if (Acts()) Decay(lr);
  }

  void Decay(double lr) {
    at::NoGradGuard no_grad;
    const double kept = 1 - lr * param("decay").get<double>();
    double squares = 0;
    for (const auto& [name, parameter] : parameters()) {
      if (parameter.requires_grad()) continue;
      squares += parameter.square().sum().item<double>();
      parameter.detach().mul_(kept);
    }
    if (squares == 0 || kept == 1) return;
    Fired({{"before", EncodeNumber(std::sqrt(squares))},
           {"after", EncodeNumber(kept * std::sqrt(squares))}});
  }
};

REGISTER_FAULT(Info, DecayFrozen);

}  // namespace
}  // namespace trainwreck
