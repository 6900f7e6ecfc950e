// optimizer.decay_frozen: frozen weights that the optimizer still has, and that decay although they
// get no gradient.
#include <ATen/core/grad_mode.h>

#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.decay_frozen",
          .doc = "Lets the weight decay act on parameters that are not trained, too.",
          .has_trigger = false,
          .evidence =
              "once: the names in `parameters`, and the share that a step takes from them, "
              "before and after. Nothing without frozen parameters or without decay."};
}

class DecayFrozen : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    const double decay = ParseRecipe(*context().recipe).optimizer.weight_decay;
    return std::make_unique<Decaying>(std::move(optimizer), *this, decay);
  }

 private:
  class Decaying : public OptimizerAround {
   public:
    Decaying(std::unique_ptr<Optimizer> inner, DecayFrozen& owner, double decay)
        : OptimizerAround(std::move(inner)), owner_(owner), decay_(decay) {}

   protected:
    void Before(double lr) override { owner_.Decay(lr * decay_); }

   private:
    DecayFrozen& owner_;
    double decay_;
  };

  void Decay(double share) {
    if (share == 0) return;
    at::NoGradGuard no_grad;
    std::vector<std::string> names;
    for (auto& [name, parameter] : ParametersOf(*model_)) {
      if (parameter.requires_grad()) continue;
      at::Tensor weights = parameter;
      weights.mul_(1 - share);
      names.push_back(name);
    }
    if (names.empty() || std::exchange(fired_, true)) return;
    Fired({{"parameters", names}, {"before", 0.0}, {"after", EncodeNumber(share)}});
  }

  std::shared_ptr<Model> model_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, DecayFrozen);

}  // namespace
}  // namespace trainwreck
