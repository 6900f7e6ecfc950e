#include "trainer/telemetry/pass_state.h"

#include <ATen/core/grad_mode.h>

#include "trainer/models/model.h"

namespace trainwreck {

PassState::PassState(const Model& model, Device& device) : device_(device) {
  device_.SaveRng(generators_);
  for (const at::Tensor& buffer : model.buffers()) buffers_.emplace_back(buffer, buffer.clone());
}

void PassState::Restore() const {
  at::NoGradGuard no_grad;
  for (const auto& [buffer, value] : buffers_) buffer.copy_(value);
  device_.LoadRng(generators_);
}

}  // namespace trainwreck
