#include "trainer/early_stop.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>

#include <string>

#include "trainer/memory_owner.h"

namespace trainwreck {

void EarlyStop::Judge(int step, double loss) {
  if (!(loss < best_loss_)) {
    ++waited_;
    return;
  }
  waited_ = 0;
  best_step_ = step;
  best_loss_ = loss;
  best_.clear();
  MemoryScope memory(CurrentMemoryOwner());
  for (const auto& [name, tensor] : weights_) best_.emplace_back(name, tensor.detach().clone());
}

bool EarlyStop::RestoreBest() {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < best_.size(); ++i) weights_[i].second.copy_(best_[i].second);
  return !best_.empty();
}

void EarlyStop::Save(StateDict& state) const {
  if (best_.empty()) return;
  for (const auto& [name, tensor] : best_) state["early_stop.best." + name] = tensor;
  state["early_stop.step"] = at::scalar_tensor(best_step_, at::kLong);
  state["early_stop.loss"] = at::scalar_tensor(best_loss_, at::kDouble);
  state["early_stop.waited"] = at::scalar_tensor(waited_, at::kLong);
}

void EarlyStop::Load(const StateDict& state) {
  NamedTensors best;
  for (const auto& [name, tensor] : weights_) {
    const auto entry = state.find("early_stop.best." + name);
    if (entry == state.end()) return;
    best.emplace_back(name, entry->second.to(tensor.device(), /*non_blocking=*/false,
                                             /*copy=*/true));
  }
  best_ = std::move(best);
  if (auto entry = state.find("early_stop.step"); entry != state.end()) {
    best_step_ = entry->second.item<int>();
  }
  if (auto entry = state.find("early_stop.loss"); entry != state.end()) {
    best_loss_ = entry->second.item<double>();
  }
  if (auto entry = state.find("early_stop.waited"); entry != state.end()) {
    waited_ = entry->second.item<std::int64_t>();
  }
}

}  // namespace trainwreck
