#include "trainer/telemetry/coverage.h"

#include "trainer/recipe/recipe.h"
#include "trainer/tensor_views.h"

namespace trainwreck {
namespace {

std::vector<std::uint64_t> DigestsNow(const NamedTensors& parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, parameter] : parameters) tensors.push_back(parameter.detach());
  return DigestsOf(tensors);
}

}  // namespace

void CoverageAudit::BeforeUpdate(const NamedTensors& parameters,
                                 const std::vector<kernels::TensorStats>& gradients,
                                 const std::string& trainable) {
  gaps_ = {};
  moving_.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    if (!AnyGlobMatches(trainable, name)) continue;
    if (gradients[i].count == 0) {
      gaps_.without_gradient.push_back(name);
    } else if (gradients[i].zeros < gradients[i].count) {
      moving_.emplace_back(name, parameter);
    }
  }
  digests_ = DigestsNow(moving_);
}

CoverageGaps CoverageAudit::AfterUpdate() {
  const std::vector<std::uint64_t> now = DigestsNow(moving_);
  for (std::size_t i = 0; i < moving_.size(); ++i) {
    if (now[i] == digests_[i]) gaps_.without_update.push_back(moving_[i].first);
  }
  return std::move(gaps_);
}

}  // namespace trainwreck
