// optimizer.scale_after_clipping: gradients that are multiplied once more between clipping and the
// update, as by ranks that are averaged too late.
#include <ATen/core/grad_mode.h>

#include "injectors/optimizer/update_fault.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.scale_after_clipping",
          .doc = "Multiplies all gradients by a factor right before the update.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 2.0,
                      .unit = "times",
                      .doc = "What each gradient is multiplied by."}},
          .evidence = "at each step: the factor, 1 before"};
}

class ScaleAfterClipping : public UpdateFault {
 public:
  using UpdateFault::UpdateFault;

 private:
  void Update(Optimizer& optimizer, double lr) override {
    if (Acts()) Scale();
    optimizer.Step(lr);
  }

  void Scale() {
    at::NoGradGuard no_grad;
    const double factor = param("factor").get<double>();
    for (const auto& [name, parameter] : parameters()) {
      if (parameter.grad().defined()) parameter.grad().mul_(factor);
    }
    Fired({{"before", 1.0}, {"after", factor}});
  }
};

REGISTER_FAULT(Info, ScaleAfterClipping);

}  // namespace
}  // namespace trainwreck
