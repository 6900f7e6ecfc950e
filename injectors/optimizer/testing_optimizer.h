// A model of two parameters and its optimizer, with a fault around them: for tests.
#pragma once

#include <ATen/ops/ones.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {

class TwoWeights : public Model {
 public:
  TwoWeights()
      : body(register_parameter("body", at::ones({2}))),
        head(register_parameter("head", at::ones({3}))) {}
  at::Tensor Loss(const Batch& batch) override { return body.sum() + 2 * head.sum(); }
  at::Tensor body, head;
};

// p -= lr * g, for each parameter with a gradient.
class PlainSgd : public Optimizer {
 public:
  explicit PlainSgd(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {}
  void ZeroGrad() override {
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  }
  void Step(double lr) override {
    for (at::Tensor& parameter : parameters_) {
      if (parameter.grad().defined()) parameter.data().sub_(parameter.grad(), lr);
    }
  }
  void Save(StateDict& state) const override { state["optimizer.saved"] = at::ones({}); }
  void Load(const StateDict& state) override { loaded = state.size(); }
  std::size_t loaded = 0;

 private:
  std::vector<at::Tensor> parameters_;
};

struct Broken {
  Broken(FaultBench& bench, const std::string& fault, std::map<std::string, Json> with = {},
         Trigger trigger = {})
      : injector(bench.Make(fault, std::move(with), trigger)) {
    PartWrapper& wrapper = *injector;
    wrapper.Wrap(std::shared_ptr<Model>(model));
    optimizer =
        wrapper.Wrap(std::unique_ptr<Optimizer>(std::make_unique<PlainSgd>(model->parameters())));
  }
  void Step() {
    optimizer->ZeroGrad();
    model->Loss({}).backward();
    optimizer->Step(0.5);
  }
  double Gradient(const at::Tensor& parameter) { return parameter.grad()[0].item<double>(); }

  std::shared_ptr<TwoWeights> model = std::make_shared<TwoWeights>();
  std::unique_ptr<Injector> injector;
  std::unique_ptr<Optimizer> optimizer;
};

}  // namespace trainwreck
