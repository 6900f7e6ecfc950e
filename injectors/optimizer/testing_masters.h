// Two bf16 parameters of a model with masters around plain SGD, and a fault in it: for tests.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "injectors/optimizer/testing_optimizer.h"
#include "injectors/testing.h"
#include "trainer/optimizers/master_weights.h"
#include "trainer/optimizers/optimizers.h"

namespace trainwreck {

// The model's weights are 1, the gradients 1 (body) and 2 (head), the rate 0.5.
struct WithMastersAnd {
  WithMastersAnd(FaultBench& bench, const std::string& fault, std::map<std::string, Json> with = {},
                 bool masters = true)
      : injector(bench.Make(fault, std::move(with))) {
    model->to(at::kBFloat16);
    PartWrapper& wrapper = *injector;
    wrapper.Wrap(std::shared_ptr<Model>(model));
    const auto sgd = [](NamedTensors some) { return MakeSgd(std::move(some), {}); };
    const NamedTensors parameters = ParametersOf(*model);
    optimizer = wrapper.Wrap(masters ? WithMasters(parameters, sgd) : sgd(parameters));
  }
  void Step() {
    optimizer->ZeroGrad();
    model->Loss({}).backward();
    optimizer->Step(0.5);
  }
  double Master(const std::string& name) const {
    StateDict state;
    optimizer->Save(state);
    return state.at("optimizer.master." + name)[0].item<double>();
  }

  std::shared_ptr<TwoWeights> model = std::make_shared<TwoWeights>();
  std::unique_ptr<Injector> injector;
  std::unique_ptr<Optimizer> optimizer;
};

}  // namespace trainwreck
