// optimizer.decay_all_groups: weight decay that is read from the optimizer's defaults, and not from
// the group.
#include "injectors/injector.h"
#include "trainer/optimizers/optimizers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.decay_all_groups",
          .doc = "Gives every group of parameters the weight decay of the first.",
          .has_trigger = false,
          .evidence =
              "once: the weight decay of the last group, before and after. Nothing where all "
              "have the same."};
}

class DecayAllGroups : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    auto* grouped = dynamic_cast<GroupedOptimizer*>(optimizer.get());
    if (grouped == nullptr) return optimizer;
    const double first = grouped->groups().front().weight_decay;
    const double last = grouped->groups().back().weight_decay;
    if (first == last) return optimizer;
    for (ParameterGroup& group : grouped->groups()) group.weight_decay = first;
    Fired({{"before", last}, {"after", first}});
    return optimizer;
  }
};

REGISTER_FAULT(Info, DecayAllGroups);

}  // namespace
}  // namespace trainwreck
