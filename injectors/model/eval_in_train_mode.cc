// recipe.eval_in_train_mode: a call of model.eval() that is missing. Batch norm then judges by each
// batch's own statistics, and dropout goes on.
#include <utility>

#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.eval_in_train_mode",
          .doc = "Evaluates with the model in training mode.",
          .evidence = "at the first evaluation: the model's mode, eval before and train after"};
}

class EvalInTrainMode : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(EvalInTrainMode& injector) : injector_(injector) {}
    void OnEvaluation(int /*step*/) override { injector_.Train(); }

   private:
    EvalInTrainMode& injector_;
  };

  void Train() {
    if (!Acts()) return;
    const bool was_training = model_->is_training();
    model_->train();
    if (std::exchange(fired_, true)) return;
    Fired({{"before", was_training ? "train" : "eval"}, {"after", "train"}});
  }

  std::shared_ptr<Model> model_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, EvalInTrainMode);

}  // namespace
}  // namespace trainwreck
