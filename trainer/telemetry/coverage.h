// Finds parameters that a step leaves out, though they should train: they are cut off from the
// loss, or unknown to the optimizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor_stats.h"
#include "trainer/optimizers/optimizers.h"

namespace trainwreck {

struct CoverageGaps {
  std::vector<std::string> without_gradient;  // the backward pass did not reach them
  std::vector<std::string> without_update;    // a gradient that is not 0, and no bit has changed
};

class CoverageAudit {
 public:
  // `gradients`: statistics of the parameters' gradients; of an empty tensor where there is none.
  // `trainable` as in model.trainable.
  void BeforeUpdate(const NamedTensors& parameters,
                    const std::vector<kernels::TensorStats>& gradients,
                    const std::string& trainable);
  CoverageGaps AfterUpdate();

 private:
  CoverageGaps gaps_;
  NamedTensors moving_;  // those that an update should change
  std::vector<std::uint64_t> digests_;
};

}  // namespace trainwreck
