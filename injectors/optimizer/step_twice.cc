// optimizer.step_twice: parameters that are in the optimizer two times, or a step that is called
// once by the loop and once by a hook.
#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.step_twice",
          .doc = "Makes each update of the optimizer two times.",
          .evidence = "at each step: how many updates, 1 before and 2 after"};
}

class StepTwice : public Injector {
 public:
  using Injector::Injector;
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override;
};

class TwiceOptimizer : public OptimizerAround {
 public:
  TwiceOptimizer(std::unique_ptr<Optimizer> inner, StepTwice& owner)
      : OptimizerAround(std::move(inner)), owner_(owner) {}
  void Step(double lr) override {
    inner().Step(lr);
    if (!owner_.Acts()) return;
    inner().Step(lr);
    owner_.Fired({{"before", 1}, {"after", 2}});
  }

 private:
  StepTwice& owner_;
};

std::unique_ptr<Optimizer> StepTwice::Wrap(std::unique_ptr<Optimizer> optimizer) {
  return std::make_unique<TwiceOptimizer>(std::move(optimizer), *this);
}

REGISTER_FAULT(Info, StepTwice);

}  // namespace
}  // namespace trainwreck
