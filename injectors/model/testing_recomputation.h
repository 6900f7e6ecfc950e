// A model of one part that is computed again in the backward pass: for tests.
#pragma once

#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <memory>
#include <vector>

#include "injectors/testing.h"
#include "trainer/models/layers.h"
#include "trainer/models/precision.h"

namespace trainwreck {

class OneRecomputed : public Model {
 public:
  explicit OneRecomputed(double dropout)
      : weight(register_parameter("weight", at::ones({8, 8}))),
        dropout_(register_module("drop", std::make_shared<Dropout>(dropout))),
        recomputation_(register_module("recomputation", std::make_shared<Recomputation>())) {}
  at::Tensor Loss(const Batch& batch) override {
    const auto forward = [this](const at::Tensor& x) {
      outputs.push_back(dropout_->Forward(at::matmul(x, weight)).detach());
      return dropout_->Forward(at::matmul(x, weight));
    };
    return recomputation_->Forward(forward, batch.inputs, {weight}).sum();
  }
  at::Tensor weight;
  std::vector<at::Tensor> outputs;  // of each pass

 private:
  std::shared_ptr<Dropout> dropout_;
  std::shared_ptr<Recomputation> recomputation_;
};

// The outputs of both passes of one step, with `fault` in it, in bf16.
inline std::vector<at::Tensor> BothPasses(FaultBench& bench, const std::string& fault,
                                          double dropout = 0.5, Trigger trigger = {}) {
  auto model = std::make_shared<OneRecomputed>(dropout);
  const auto injector = bench.Make(fault, {}, trigger);
  EXPECT_EQ(static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model)), model);
  at::Tensor loss;
  {
    AutocastGuard autocast({c10::kCPU, at::kBFloat16});
    loss = model->Loss({.inputs = at::ones({4, 8})});
  }
  loss.backward();
  return model->outputs;
}

}  // namespace trainwreck
