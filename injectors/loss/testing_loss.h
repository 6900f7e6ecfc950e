// A model for tests: a cross entropy alone, over logits that the test gives.
#pragma once

#include <memory>

#include "injectors/testing.h"
#include "trainer/models/layers.h"

namespace trainwreck {

class LossOfLogits : public Model {
 public:
  explicit LossOfLogits(LossForm form)
      : loss_(register_module("loss",
                              std::make_shared<WeightedCrossEntropy>(LossRecipe{.form = form}))) {}
  // The loss of the logits in Batch::inputs.
  at::Tensor Loss(const Batch& batch) override {
    return loss_->Forward(batch.inputs, batch.targets, batch.weights);
  }

 private:
  std::shared_ptr<WeightedCrossEntropy> loss_;
};

// The loss of a batch with `fault` in it; empty: without one.
inline double LossWith(FaultBench& bench, const std::string& fault, const Batch& batch,
                       LossForm form = LossForm::kLogOfSoftmax,
                       std::map<std::string, Json> with = {}) {
  auto model = std::make_shared<LossOfLogits>(form);
  std::unique_ptr<Injector> injector;
  if (!fault.empty()) {
    injector = bench.Make(fault, std::move(with));
    EXPECT_EQ(static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model)), model);
  }
  return model->Loss(batch).item<double>();
}

// A model without a cross entropy.
class OneNumber : public Model {
 public:
  at::Tensor Loss(const Batch& batch) override { return batch.weights.sum(); }
};

}  // namespace trainwreck
