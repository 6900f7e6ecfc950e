// model.stay_in_eval_mode: an evaluation between two micro-batches after which nobody calls
// model.train(): the loop does so at the beginning of a step alone.
#include <utility>

#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.stay_in_eval_mode",
          .doc =
              "Leaves the model in evaluation mode from an evaluation on until the step is over: "
              "without dropout, and with batch norm's running means.",
          .evidence =
              "at the first forward pass that is in the wrong mode: train before and eval after. "
              "Nothing where no step goes on after an evaluation."};
}

class StayInEvalMode : public Injector, public ForwardHook {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    model->AddHook(*this);
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

  // At the first layer's output: dropout comes behind it.
  void OnOutput(const std::string& /*module*/, at::Tensor& /*output*/) override {
    if (!stays_ || !model_->is_training()) return;
    model_->eval();
    if (!std::exchange(fired_, true)) Fired({{"before", "train"}, {"after", "eval"}});
  }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(StayInEvalMode& injector) : injector_(injector) {}
    void OnEvaluation(int) override { injector_.stays_ = injector_.Acts(); }
    void OnBackwardDone(int) override { injector_.EndStep(); }
    void OnStepBegin(int) override { injector_.EndStep(); }

   private:
    StayInEvalMode& injector_;
  };

  void EndStep() {
    if (std::exchange(stays_, false)) model_->train();
  }

  std::shared_ptr<Model> model_;
  bool stays_ = false;
  bool fired_ = false;
};

REGISTER_FAULT(Info, StayInEvalMode);

}  // namespace
}  // namespace trainwreck
