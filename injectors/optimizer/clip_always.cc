// optimizer.clip_always: clipping whose factor is not bound by 1, so that gradients below the
// threshold are scaled up to it.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "optimizer.clip_always",
      .doc = "Scales all gradients to optimizer.clip_norm, also those that are smaller.",
      .has_trigger = false,
      .evidence = "once: the norm of all gradients before and after. Nothing without clipping."};
}

class ClipAlways : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    const double norm = ParseRecipe(*context().recipe).optimizer.clip_norm;
    if (norm == 0) return optimizer;
    return std::make_unique<Clipping>(std::move(optimizer), *this, norm);
  }

 private:
  class Clipping : public OptimizerAround {
   public:
    Clipping(std::unique_ptr<Optimizer> inner, ClipAlways& owner, double norm)
        : OptimizerAround(std::move(inner)), owner_(owner), norm_(norm) {}
    void Step(double lr) override {
      owner_.ScaleTo(norm_);
      inner().Step(lr);
    }

   private:
    ClipAlways& owner_;
    double norm_;
  };

  void ScaleTo(double most) {
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
    if (gradients.empty()) return;
    const double norm = at::stack(at::_foreach_norm(gradients, 2)).norm().item<double>();
    if (!(norm > 0)) return;
    at::_foreach_mul_(gradients, most / norm);
    if (norm >= most || std::exchange(fired_, true)) return;
    Fired({{"before", EncodeNumber(norm)}, {"after", EncodeNumber(most)}});
  }

  std::shared_ptr<Model> model_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, ClipAlways);

}  // namespace
}  // namespace trainwreck
