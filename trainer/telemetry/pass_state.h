// What forward and backward passes change besides gradients: the generators that they draw from,
// and the model's buffers. So that the same passes can be made again.
#pragma once

#include <utility>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

class Model;

class PassState {
 public:
  // As it is now. The device must outlive it.
  PassState(const Model& model, Device& device);
  void Restore() const;

 private:
  Device& device_;
  StateDict generators_;
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;  // and their values
};

}  // namespace trainwreck
