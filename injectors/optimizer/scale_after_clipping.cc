// optimizer.scale_after_clipping: gradients that are multiplied once more between clipping and the
// update, as by ranks that are averaged too late.
#include <ATen/core/grad_mode.h>

#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"
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

class ScaleAfterClipping : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override;

  void Scale() {
    if (!Acts()) return;
    at::NoGradGuard no_grad;
    const double factor = param("factor").get<double>();
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (parameter.grad().defined()) parameter.grad().mul_(factor);
    }
    Fired({{"before", 1.0}, {"after", factor}});
  }

 private:
  std::shared_ptr<Model> model_;
};

class ScalingOptimizer : public OptimizerAround {
 public:
  ScalingOptimizer(std::unique_ptr<Optimizer> inner, ScaleAfterClipping& owner)
      : OptimizerAround(std::move(inner)), owner_(owner) {}
  void Step(double lr) override {
    owner_.Scale();
    inner().Step(lr);
  }

 private:
  ScaleAfterClipping& owner_;
};

std::unique_ptr<Optimizer> ScaleAfterClipping::Wrap(std::unique_ptr<Optimizer> optimizer) {
  return std::make_unique<ScalingOptimizer>(std::move(optimizer), *this);
}

REGISTER_FAULT(Info, ScaleAfterClipping);

}  // namespace
}  // namespace trainwreck
