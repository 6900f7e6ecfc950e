// Of the training loop (loop.h): which block of the model the memory of activations is of.
#include <utility>

#include "trainer/loop.h"
#include "trainer/telemetry/memory_sites.h"

namespace trainwreck {

ForwardHook* TrainingLoop::BeginForwardParts() {
  if (!forward_parts_) return nullptr;
  forward_parts_->Begin();
  return &*forward_parts_;
}

Json TrainingLoop::ByBlock(const std::vector<std::int64_t>& by_part) const {
  return forward_parts_ ? forward_parts_->ByBlock(by_part) : Json::object();
}

void TrainingLoop::ReportBlocks() {
  const std::optional<MemoryUse>& memory = now_.memory;
  if (!forward_parts_ || !memory || !memory->peak_by_owner) return;
  if (memory->peak_bytes <= reported_peak_) return;
  reported_peak_ = memory->peak_bytes;
  events_.Report(events::kMemoryBlocks,
                 {{"peak_bytes", memory->peak_bytes},
                  {"activations_bytes", BytesOf(*memory->peak_by_owner, MemoryOwner::kActivations)},
                  {"by_block", ByBlock(memory->peak_by_part)},
                  {"by_site", BySite(memory->peak_by_site)}});
}

}  // namespace trainwreck
