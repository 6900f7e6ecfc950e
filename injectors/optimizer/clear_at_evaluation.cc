// optimizer.clear_at_evaluation: an evaluation that clears the gradients, as one that shares code
// with the training step does. In the middle of an accumulation it takes away what was gathered.
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.clear_at_evaluation",
          .doc = "Calls zero_grad() at each evaluation.",
          .evidence =
              "at the first evaluation between two micro-batches: how many parameters have a "
              "gradient, before and after. Nothing where all evaluations are between steps."};
}

class ClearAtEvaluation : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    optimizer_ = optimizer.get();
    return optimizer;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(ClearAtEvaluation& injector) : injector_(injector) {}
    void OnStepBegin(int) override { injector_.gathers_ = true; }
    void OnBackwardDone(int) override { injector_.gathers_ = false; }
    void OnEvaluation(int) override { injector_.Clear(); }

   private:
    ClearAtEvaluation& injector_;
  };

  std::int64_t Gradients() const {
    std::int64_t count = 0;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      count += parameter.grad().defined() ? 1 : 0;
    }
    return count;
  }

  void Clear() {
    if (!Acts()) return;
    const std::int64_t before = Gradients();
    optimizer_->ZeroGrad();
    if (!gathers_ || before == 0 || std::exchange(fired_, true)) return;
    Fired({{"before", before}, {"after", Gradients()}});
  }

  std::shared_ptr<Model> model_;
  Optimizer* optimizer_ = nullptr;
  bool gathers_ = false;  // gradients of the step in progress
  bool fired_ = false;
};

REGISTER_FAULT(Info, ClearAtEvaluation);

}  // namespace
}  // namespace trainwreck
