// A model that has nothing but rotary positions, with faults in it: for tests.
#pragma once

#include <ATen/ops/ones.h>

#include <memory>
#include <string>
#include <vector>

#include "injectors/testing.h"
#include "trainer/models/layers.h"

namespace trainwreck {

class RotaryModel : public Model {
 public:
  RotaryModel() : rotary(register_module("rotary", std::make_shared<Rotary>(1.0))) {}
  at::Tensor Loss(const Batch&) override { return at::ones({}); }
  // The positions of a row of three tokens.
  std::vector<double> Places() const {
    const at::Tensor places = rotary->places()(3, at::TensorOptions().dtype(at::kFloat));
    return {places[0].item<double>(), places[1].item<double>(), places[2].item<double>()};
  }
  std::shared_ptr<Rotary> rotary;
};

}  // namespace trainwreck
