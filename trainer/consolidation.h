// Elastic weight consolidation (Kirkpatrick et al. 2017, "Overcoming catastrophic forgetting in neural
// networks", equation 3): while a model learns another task, a spring holds each weight w where the
// task before left it, w*, as strongly as that task depends on it:
//
//   loss + strength / 2 * sum F (w - w*)^2
//
// F is the diagonal of the Fisher information, here the empirical one: the mean over samples of the
// squared gradient of a sample's loss. In nats.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

class Consolidation {
 public:
  // Samples that F is a mean over, at most.
  static constexpr std::int64_t kSamples = 512;

  // Takes w* from the model as it is, and F from the first samples of `data`, of the task before.
  // `parameters` are the model's; the gradients that they have are lost.
  Consolidation(Model& model, const Device& device, NamedTensors parameters, const Dataset& data,
                double strength);

  // Adds the gradient of the springs, strength * F * (w - w*), to that of each parameter.
  void AddGradients() const;

  std::int64_t samples() const { return samples_; }
  double fisher_mean() const;  // over all weights

 private:
  NamedTensors parameters_;
  double strength_;
  std::int64_t samples_ = 0;
  std::vector<at::Tensor> anchors_;  // w*
  std::vector<at::Tensor> fisher_;   // F
};

}  // namespace trainwreck
