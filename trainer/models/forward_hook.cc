#include "trainer/models/forward_hook.h"

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

}  // namespace trainwreck
