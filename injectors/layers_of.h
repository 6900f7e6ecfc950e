// The layers of one type in a model, for faults that put something else into them.
//
//   const auto names = ForLayers<CausalAttention>(*model, [](CausalAttention& layer) { ... });
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

// Calls `change` with each, at any depth; the names of their modules. Needs trainer/models/layers.h
// where it is called.
template <typename LayerType, typename ModelType, typename Change>
std::vector<std::string> ForLayers(ModelType& model, const Change& change) {
  std::vector<std::string> names;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (auto* layer = item.value()->template as<LayerType>()) {
      change(*layer);
      names.push_back(item.key());
    }
  }
  return names;
}

}  // namespace trainwreck
