// optimizer.clip_before_reduce: gradients that each rank clips by itself, before they are averaged:
// the mean then has another direction, and is small.
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.clip_before_reduce",
          .doc =
              "Clips each rank's own gradients to optimizer.clip_norm before they are reduced "
              "over the ranks. Nothing where the recipe does not clip.",
          .evidence = "at each step at which it clips: the rank's own norm before and after"};
}

class ClipBeforeReduce : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model.get();
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override;

  void Clip() {
    const auto norm = context().recipe->find("optimizer.clip_norm");
    const double largest = norm == context().recipe->end() ? 0 : norm->second.get<double>();
    if (largest <= 0 || !Acts()) return;
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    double squares = 0;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (!parameter.grad().defined()) continue;
      gradients.push_back(parameter.grad());
      squares += parameter.grad().to(at::kDouble).square().sum().item<double>();
    }
    const double before = std::sqrt(squares);
    if (!(before > largest)) return;
    for (at::Tensor& gradient : gradients) gradient.mul_(largest / before);
    Fired({{"before", EncodeNumber(before)}, {"after", largest}});
  }

 private:
  Model* model_ = nullptr;
};

class ClipHook : public LoopHook {
 public:
  explicit ClipHook(ClipBeforeReduce& injector) : injector_(injector) {}
  void OnBackwardDone(int) override { injector_.Clip(); }

 private:
  ClipBeforeReduce& injector_;
};

std::unique_ptr<LoopHook> ClipBeforeReduce::MakeHook() { return std::make_unique<ClipHook>(*this); }

REGISTER_FAULT(Info, ClipBeforeReduce);

}  // namespace
}  // namespace trainwreck
