// recipe.summed_micro_batches: accumulation that forgets to divide by the number of micro-batches.
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.summed_micro_batches",
          .doc = "Adds up the losses of a step's micro-batches, where their mean was meant.",
          .has_trigger = false,
          .evidence = "once: what a step's gradients are of, the mean before and the sum after"};
}

class SummingScaler : public LossScaler {
 public:
  explicit SummingScaler(std::unique_ptr<LossScaler> inner) : inner_(std::move(inner)) {}
  at::Tensor Scale(const at::Tensor& loss, double share) const override {
    return inner_->Scale(loss, /*share=*/1);
  }
  double scale() const override { return inner_->scale(); }
  bool skips_updates() const override { return inner_->skips_updates(); }
  bool Unscale(const std::vector<at::Tensor>& gradients) override {
    return inner_->Unscale(gradients);
  }
  void Update(bool overflowed) override { inner_->Update(overflowed); }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 private:
  std::unique_ptr<LossScaler> inner_;
};

class SummedMicroBatches : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> scaler) override {
    Fired({{"before", "mean"}, {"after", "sum"}});
    return std::make_unique<SummingScaler>(std::move(scaler));
  }
};

REGISTER_FAULT(Info, SummedMicroBatches);

}  // namespace
}  // namespace trainwreck
