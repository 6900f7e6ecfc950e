// optimizer.stale_group_rate: a schedule that sets the rate of param_groups[0] alone.
#include <optional>
#include <utility>

#include "injectors/injector.h"
#include "trainer/optimizers/optimizers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.stale_group_rate",
          .doc =
              "Lets the schedule reach the first group of parameters alone: the others keep the "
              "rate of the first step that this acts on.",
          .evidence =
              "at the first step whose rate is another one: the rate of the last group, before "
              "and after. Nothing where the optimizer has one group, or the rate stays."};
}

class StaleGroupRate : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    if (auto* grouped = dynamic_cast<GroupedOptimizer*>(optimizer.get())) {
      grouped->set_rate(
          [this](std::size_t group, double lr) { return group == 0 || !Acts() ? lr : Kept(lr); });
    }
    return optimizer;
  }

 private:
  double Kept(double lr) {
    if (!kept_) kept_ = lr;
    if (*kept_ != lr && !std::exchange(fired_, true)) Fired({{"before", lr}, {"after", *kept_}});
    return *kept_;
  }

  std::optional<double> kept_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, StaleGroupRate);

}  // namespace
}  // namespace trainwreck
