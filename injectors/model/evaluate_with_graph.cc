// model.evaluate_with_graph: a no_grad() that is missing around the evaluation. Its forward passes
// then keep every activation for a backward pass that never comes.
#include <ATen/core/grad_mode.h>

#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.evaluate_with_graph",
          .doc = "Evaluates with gradients enabled.",
          .evidence = "at the first evaluation: whether graphs are built, before and after"};
}

class EvaluateWithGraph : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(EvaluateWithGraph& injector) : injector_(injector) {}
    void OnEvaluation(int /*step*/) override { injector_.Enable(); }

   private:
    EvaluateWithGraph& injector_;
  };

  // Until the end of the evaluation, which puts back what was before it.
  void Enable() {
    if (!Acts()) return;
    const bool was_enabled = at::GradMode::is_enabled();
    at::GradMode::set_enabled(true);
    if (std::exchange(fired_, true)) return;
    Fired({{"before", was_enabled ? "graph" : "no graph"}, {"after", "graph"}});
  }

  bool fired_ = false;
};

REGISTER_FAULT(Info, EvaluateWithGraph);

}  // namespace
}  // namespace trainwreck
