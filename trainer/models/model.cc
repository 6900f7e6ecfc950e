#include "trainer/models/model.h"

#include <set>

namespace trainwreck {

void HookedModule::AddHook(ForwardHook& hook) {
  if (!wired_) {
    for (const auto& item : named_modules("", /*include_self=*/false)) {
      auto* layer = dynamic_cast<Layer*>(item.value().get());
      if (layer == nullptr) continue;
      layer->path_ = item.key();
      layer->hooks_ = &hooks_;
    }
    wired_ = true;
  }
  hooks_.push_back(&hook);
}

void HookedModule::RemoveHook(ForwardHook& hook) { std::erase(hooks_, &hook); }

double MatrixElements(const torch::nn::Module& module) {
  double elements = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    if (parameter.dim() == 2) elements += static_cast<double>(parameter.numel());
  }
  return elements;
}

double Model::ForwardFlops(const Batch& batch) const {
  return 2 * MatrixElements(*this) * static_cast<double>(batch.targets.numel());
}

NamedTensors ParametersOf(const Model& model) {
  NamedTensors parameters;
  std::set<const void*> seen;  // modules may share one: tied embeddings
  for (const auto& item : model.named_parameters()) {
    if (!seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

NamedTensors BuffersOf(const Model& model) {
  NamedTensors buffers;
  for (const auto& item : model.named_buffers()) buffers.emplace_back(item.key(), item.value());
  return buffers;
}

}  // namespace trainwreck
