// optimizer.decay_without_rate: a decoupled weight decay that is not multiplied by the learning
// rate, as the first papers have it. It goes on where the rate is 0.
#include <ATen/core/grad_mode.h>

#include <stdexcept>
#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"
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

class DecayWithoutRate : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    const OptimizerRecipe recipe = ParseRecipe(*context().recipe).optimizer;
    if (recipe.kind != OptimizerKind::kAdamW) {
      throw std::runtime_error("optimizer.decay_without_rate: only of adamw");
    }
    if (recipe.weight_decay == 0) return optimizer;
    return std::make_unique<Decaying>(std::move(optimizer), *this, recipe.weight_decay);
  }

 private:
  class Decaying : public OptimizerAround {
   public:
    Decaying(std::unique_ptr<Optimizer> inner, DecayWithoutRate& owner, double decay)
        : OptimizerAround(std::move(inner)), owner_(owner), decay_(decay) {}
    void Step(double lr) override {
      owner_.Decay(lr * decay_, decay_);
      inner().Step(lr);
    }

   private:
    DecayWithoutRate& owner_;
    double decay_;
  };

  // The update itself takes `before` of what is left here, which makes it `after`.
  void Decay(double before, double after) {
    at::NoGradGuard no_grad;
    for (auto& [name, parameter] : ParametersOf(*model_)) {
      at::Tensor weights = parameter;
      if (parameter.grad().defined()) weights.mul_((1 - after) / (1 - before));
    }
    if (std::exchange(fired_, true)) return;
    Fired({{"before", EncodeNumber(before)}, {"after", EncodeNumber(after)}});
  }

  std::shared_ptr<Model> model_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, DecayWithoutRate);

}  // namespace
}  // namespace trainwreck
