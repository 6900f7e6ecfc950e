// optimizer.gradients_in_16_bits: gradients that keep the type of their parameter until the
// optimizer reads them, so that micro-batches and ranks are added up in 16 bits.
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.gradients_in_16_bits",
          .doc =
              "Adds gradients up, over micro-batches and ranks, in the type of their parameter in "
              "place of fp32.",
          .has_trigger = false,
          .evidence =
              "once: of how many parameters, and the types of their gradients before and after. "
              "Nothing where gradients have their parameter's type."};
}

class GradientsIn16Bits : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }

  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    std::int64_t changed = 0;
    at::ScalarType before = at::kFloat, after = at::kFloat;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (!parameter.requires_grad() || parameter.grad_dtype() == parameter.scalar_type()) continue;
      before = parameter.grad_dtype().value_or(before);
      after = parameter.scalar_type();
      parameter.set_grad_dtype(after);
      ++changed;
    }
    if (changed > 0) {
      Fired({{"parameters", changed},
             {"before", c10::toString(before)},
             {"after", c10::toString(after)}});
    }
    return optimizer;
  }

 private:
  std::shared_ptr<Model> model_;
};

REGISTER_FAULT(Info, GradientsIn16Bits);

}  // namespace
}  // namespace trainwreck
