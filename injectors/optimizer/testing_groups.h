// SGD over two parameters in two groups, the second without decay, with a fault in it: for tests.
#pragma once

#include <ATen/ops/ones.h>

#include <memory>
#include <string>

#include "injectors/testing.h"
#include "trainer/optimizers/optimizers.h"

namespace trainwreck {

struct TwoGroups {
  TwoGroups(FaultBench& bench, const std::string& fault, const std::string& no_decay = "bias",
            Trigger trigger = {})
      : injector(bench.Make(fault, {}, trigger)) {
    optimizer = static_cast<PartWrapper&>(*injector).Wrap(
        MakeSgd(parameters, {.weight_decay = 0.5, .no_decay = no_decay}));
  }
  // The amounts by which a step with gradients of 1 lowers the weight and the bias, which are 1
  // before it.
  std::pair<double, double> Step(double lr) {
    for (auto& [name, parameter] : parameters) {
      parameter.fill_(1);
      parameter.mutable_grad() = at::ones({1});
    }
    optimizer->Step(lr);
    return {1 - parameters[0].second.item<double>(), 1 - parameters[1].second.item<double>()};
  }

  NamedTensors parameters = {{"weight", at::ones({1})}, {"bias", at::ones({1})}};
  std::unique_ptr<Injector> injector;
  std::unique_ptr<Optimizer> optimizer;
};

}  // namespace trainwreck
