// A causal mask that is off by some positions.
#pragma once

#include <ATen/ops/ones.h>

#include <cstdint>
#include <string>
#include <vector>

#include "injectors/layers_of.h"
#include "trainer/parts.h"

namespace trainwreck {

// Changes the mask so that each position of the model's attention sees so many positions ahead; -1:
// not even its own. Returns the names of the modules that have the mask. Needs
// trainer/models/layers.h where it is called.
template <typename Attention, typename ModelType>
std::vector<std::string> ShiftMasks(ModelType& model, std::int64_t ahead) {
  return ForLayers<Attention>(model, [ahead](Attention& attention) {
    attention.set_mask([ahead](std::int64_t length, at::Device device) {
      return at::ones({length, length}, at::TensorOptions(at::kBool).device(device))
          .triu(1 + ahead);
    });
  });
}

}  // namespace trainwreck
