// optimizer.clip_before_reduce: gradients that each rank clips by itself, before they are averaged:
// the mean then has another direction, and is small.
#include "injectors/optimizer/gradient_fault.h"
#include "trainer/optimizers/clipping.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.clip_before_reduce",
          .doc =
              "Clips each rank's own gradients to optimizer.clip_norm before they are reduced "
              "over the ranks. Nothing where the recipe does not clip.",
          .evidence = "at each step at which it clips: the rank's own norm before and after"};
}

class ClipBeforeReduce : public GradientFault {
 public:
  using GradientFault::GradientFault;

 private:
  void Change(const NamedTensors& parameters) override {
    const auto norm = context().recipe->find("optimizer.clip_norm");
    const double largest = norm == context().recipe->end() ? 0 : norm->second.get<double>();
    if (largest <= 0) return;
    const double before = GlobalNorm(GradientStats(parameters));
    if (!ClipGradients(parameters, before, largest)) return;
    Fired({{"before", EncodeNumber(before)}, {"after", largest}});
  }
};

REGISTER_FAULT(Info, ClipBeforeReduce);

}  // namespace
}  // namespace trainwreck
