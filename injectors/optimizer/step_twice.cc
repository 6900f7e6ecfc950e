// optimizer.step_twice: parameters that are in the optimizer two times, or a step that is called
// once by the loop and once by a hook.
#include "injectors/optimizer/update_fault.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.step_twice",
          .doc = "Makes each update of the optimizer two times.",
          .evidence = "at each step: how many updates, 1 before and 2 after"};
}

class StepTwice : public UpdateFault {
 public:
  using UpdateFault::UpdateFault;

 private:
  void Update(Optimizer& optimizer, double lr) override {
    optimizer.Step(lr);
    if (!Acts()) return;
    optimizer.Step(lr);
    Fired({{"before", 1}, {"after", 2}});
  }
};

REGISTER_FAULT(Info, StepTwice);

}  // namespace
}  // namespace trainwreck
