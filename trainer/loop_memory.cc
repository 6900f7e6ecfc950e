// Of the training loop (loop.h): what its memory is of, by block of the model and by stage.
#include <algorithm>
#include <chrono>
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

void TrainingLoop::FollowStages() {
  clock_.on_stage = [this, first = clock_.on_stage](Stage stage) {
    if (first) first(stage);
    const auto memory = parts_.device->Memory();
    if (!memory) return;
    EndStage(*memory);
    Json bytes =
        memory->by_owner ? ByOwner(*memory->by_owner) : Json({{"all", memory->allocated_bytes}});
    entered_.push_back({stage, std::chrono::steady_clock::now(), std::move(bytes)});
  };
}

void TrainingLoop::EndStage(const MemoryUse& memory) {
  if (!entered_.empty()) {
    EnteredStage& ended = entered_.back();
    ended.peak_bytes = std::max(ended.peak_bytes, memory.peak_bytes);
    ended.moments.insert(ended.moments.end(), memory.moments.begin(), memory.moments.end());
  }
  if (!highest_ || memory.peak_bytes > highest_->peak_bytes) highest_ = memory;
  parts_.device->ResetMemoryPeak();
}

void TrainingLoop::BeginStepMemory() {
  // A checkpoint is written between two steps, and counts with neither.
  if (!entered_.empty()) EndStage(parts_.device->Memory().value());
  highest_.reset();
  parts_.device->ResetMemoryPeak();
}

std::optional<MemoryUse> TrainingLoop::StepMemory() {
  std::optional<MemoryUse> memory = parts_.device->Memory();
  if (!memory || entered_.empty()) return memory;
  EndStage(*memory);
  memory->peak_bytes = highest_->peak_bytes;
  memory->peak_by_owner = highest_->peak_by_owner;
  memory->peak_by_part = highest_->peak_by_part;
  memory->peak_by_site = highest_->peak_by_site;
  return memory;
}

void TrainingLoop::ReportStages() {
  if (entered_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  Json stages = Json::array(), moments = Json::array();
  for (EnteredStage& entered : std::exchange(entered_, {})) {
    moments.push_back({{"stage", ToString(entered.stage)}, {"bytes", entered.moments}});
    stages.push_back({{"stage", ToString(entered.stage)},
                      {"before_s", std::chrono::duration<double>(now - entered.at).count()},
                      {"bytes", std::move(entered.bytes)},
                      {"peak_bytes", entered.peak_bytes}});
  }
  const auto report = [this](const EventKind& event, Json of_stages) {
    if (telemetry_.wants(event.name())) events_.Report(event, {{"stages", std::move(of_stages)}});
  };
  report(events::kMemoryByStage, std::move(stages));
  report(events::kMemoryMoments, std::move(moments));
}

}  // namespace trainwreck
