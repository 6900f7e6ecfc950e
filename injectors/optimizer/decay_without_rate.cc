// optimizer.decay_without_rate: a decoupled weight decay that is not multiplied by the learning
// rate, as the first papers have it. It goes on where the rate is 0.
#include <ATen/core/grad_mode.h>

#include <utility>

#include "injectors/optimizer/update_fault.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.decay_without_rate",
          .doc =
              "Takes the share optimizer.weight_decay from each weight at each update, in place of "
              "this share times the learning rate (adamw).",
          .has_trigger = false,
          .evidence = "once: the share before and after. Nothing without weight decay."};
}

class DecayWithoutRate : public UpdateFault {
 public:
  using UpdateFault::UpdateFault;
  using UpdateFault::Wrap;

  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    const OptimizerRecipe recipe = ParseRecipe(*context().recipe).optimizer;
    if (recipe.kind != OptimizerKind::kAdamW) {
      throw RecipeError("optimizer.decay_without_rate: only of adamw");
    }
    decay_ = recipe.weight_decay;
    return decay_ == 0 ? std::move(optimizer) : UpdateFault::Wrap(std::move(optimizer));
  }

 private:
  void Update(Optimizer& optimizer, double lr) override {
    Decay(lr * decay_, decay_);
    optimizer.Step(lr);
  }

  // The update itself takes `before` of what is left here, which makes it `after`.
  void Decay(double before, double after) {
    at::NoGradGuard no_grad;
    for (auto& [name, parameter] : parameters()) {
      at::Tensor weights = parameter;
      if (parameter.grad().defined()) weights.mul_((1 - after) / (1 - before));
    }
    if (std::exchange(fired_, true)) return;
    Fired({{"before", EncodeNumber(before)}, {"after", EncodeNumber(after)}});
  }

  double decay_ = 0;
  bool fired_ = false;
};

REGISTER_FAULT(Info, DecayWithoutRate);

}  // namespace
}  // namespace trainwreck
