#include "harness/launch/device_room.h"

#include <algorithm>

#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

constexpr char kGpu[] = "cuda";
constexpr char kMemoryLimitKey[] = "memory.limit_bytes";
// The context of a process, which no limit of the recipe covers.
constexpr std::int64_t kContextBytes = std::int64_t{1} << 30;

}  // namespace

DeviceRoom::DeviceRoom(const std::vector<DeviceInfo>& devices, DeviceLimits limits)
    : limits_(limits) {
  for (const DeviceInfo& device : devices) {
    if (device.kind == kGpu) gpus_.push_back({.memory_bytes = device.memory_bytes});
  }
}

std::size_t DeviceRoom::GpusOf(const Run& run) const {
  if (run.device != kGpu) return 0;
  return std::min(gpus_.size(), static_cast<std::size_t>(std::max(run.ranks, 1)));
}

std::int64_t DeviceRoom::BytesOf(const Run& run) const {
  const double limit = RecipeView(run.plan.recipe).Number(kMemoryLimitKey).value_or(0);
  return limit > 0 ? static_cast<std::int64_t>(limit) + kContextBytes : limits_.run_bytes;
}

bool DeviceRoom::Fits(const Run& run) const {
  const std::int64_t bytes = BytesOf(run);
  const auto has_room = [&](const Gpu& gpu) {
    if (gpu.runs == 0) return true;
    return gpu.runs < limits_.runs &&
           (gpu.memory_bytes == 0 || gpu.used_bytes + bytes <= gpu.memory_bytes);
  };
  return std::all_of(gpus_.begin(), gpus_.begin() + static_cast<std::ptrdiff_t>(GpusOf(run)),
                     has_room);
}

void DeviceRoom::Take(const Run& run) {
  for (std::size_t i = 0; i < GpusOf(run); ++i) {
    ++gpus_[i].runs;
    gpus_[i].used_bytes += BytesOf(run);
  }
}

void DeviceRoom::Give(const Run& run) {
  for (std::size_t i = 0; i < GpusOf(run); ++i) {
    --gpus_[i].runs;
    gpus_[i].used_bytes -= BytesOf(run);
  }
}

}  // namespace trainwreck
