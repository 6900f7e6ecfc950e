// optimizer.keep_gradients: zero_grad() that is missing, or comes at the wrong place.
#include <cmath>
#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.keep_gradients",
          .doc = "The optimizer clears no gradients: each backward pass adds to all those before.",
          .evidence =
              "once, when there is a gradient to clear: for how many parameters, their "
              "gradient's norm, cleared before and kept after"};
}

class KeepGradients : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override;

  void Kept() {
    if (fired_) return;
    double squares = 0;
    int parameters = 0;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (!parameter.grad().defined()) continue;
      squares += std::pow(parameter.grad().norm().item<double>(), 2);
      ++parameters;
    }
    if (parameters == 0) return;  // the first step has nothing to clear
    fired_ = true;
    Fired({{"parameters", parameters},
           {"norm", EncodeNumber(std::sqrt(squares))},
           {"before", "cleared"},
           {"after", "kept"}});
  }

 private:
  std::shared_ptr<Model> model_;
  bool fired_ = false;
};

class KeepingOptimizer : public OptimizerAround {
 public:
  KeepingOptimizer(std::unique_ptr<Optimizer> inner, KeepGradients& injector)
      : OptimizerAround(std::move(inner)), injector_(injector) {}
  void ZeroGrad() override { injector_.Acts() ? injector_.Kept() : inner().ZeroGrad(); }

 private:
  KeepGradients& injector_;
};

std::unique_ptr<Optimizer> KeepGradients::Wrap(std::unique_ptr<Optimizer> optimizer) {
  return std::make_unique<KeepingOptimizer>(std::move(optimizer), *this);
}

REGISTER_FAULT(Info, KeepGradients);

}  // namespace
}  // namespace trainwreck
