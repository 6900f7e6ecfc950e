#include "trainer/consolidation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "trainer/data/loader.h"
#include "trainer/memory_owner.h"
#include "trainer/models/model.h"

namespace trainwreck {

Consolidation::Consolidation(Model& model, const Device& device, NamedTensors parameters,
                             const Dataset& data, double strength)
    : parameters_(std::move(parameters)),
      strength_(strength),
      samples_(std::min(kSamples, data.size())) {
  MemoryScope memory(CurrentMemoryOwner());
  for (const auto& [name, parameter] : parameters_) {
    anchors_.push_back(parameter.detach().clone());
    fisher_.push_back(at::zeros_like(parameter.detach()));
  }
  model.eval();
  for (std::int64_t id = 0; id < samples_; ++id) {
    for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
    const at::Tensor loss = model.Loss(device.Move(Collate({data.Get(id)})));
    if (!loss.requires_grad()) break;
    loss.backward();
    at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& gradient = parameters_[i].second.grad();
      if (gradient.defined()) {
        fisher_[i].addcmul_(gradient, gradient, 1.0 / static_cast<double>(samples_));
      }
    }
  }
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
  model.train();
}

void Consolidation::AddGradients() const {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].second;
    if (!parameter.grad().defined()) continue;
    parameter.grad().addcmul_(fisher_[i], parameter - anchors_[i], strength_);
  }
}

double Consolidation::fisher_mean() const {
  double sum = 0, count = 0;
  for (const at::Tensor& fisher : fisher_) {
    sum += fisher.sum().item<double>();
    count += static_cast<double>(fisher.numel());
  }
  return sum / count;
}

}  // namespace trainwreck
