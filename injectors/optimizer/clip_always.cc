// optimizer.clip_always: clipping whose factor is not bound by 1, so that gradients below the
// threshold are scaled up to it.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "injectors/optimizer/update_fault.h"
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

class ClipAlways : public UpdateFault {
 public:
  using UpdateFault::UpdateFault;
  using UpdateFault::Wrap;

  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    norm_ = ParseRecipe(*context().recipe).optimizer.clip_norm;
    return norm_ == 0 ? std::move(optimizer) : UpdateFault::Wrap(std::move(optimizer));
  }

 private:
  void Update(Optimizer& optimizer, double lr) override {
    ScaleTo(norm_);
    optimizer.Step(lr);
  }

  void ScaleTo(double most) {
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const auto& [name, parameter] : parameters()) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad());
    }
    if (gradients.empty()) return;
    const double norm = at::stack(at::_foreach_norm(gradients, 2)).norm().item<double>();
    if (!(norm > 0)) return;
    at::_foreach_mul_(gradients, most / norm);
    if (norm >= most || std::exchange(fired_, true)) return;
    Fired({{"before", EncodeNumber(norm)}, {"after", EncodeNumber(most)}});
  }

  double norm_ = 0;
  bool fired_ = false;
};

REGISTER_FAULT(Info, ClipAlways);

}  // namespace
}  // namespace trainwreck
