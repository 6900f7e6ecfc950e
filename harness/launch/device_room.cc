#include "harness/launch/device_room.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "harness/protocol/recipe_view.h"
#include "harness/text/words.h"

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

bool DeviceRoom::HasRoom(const Gpu& gpu, const Run& run) const {
  if (gpu.runs == 0) return true;
  return gpu.runs < limits_.runs &&
         (gpu.memory_bytes == 0 || gpu.used_bytes + BytesOf(run) <= gpu.memory_bytes);
}

bool DeviceRoom::Fits(const Run& run) const {
  const auto with_room =
      std::count_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return HasRoom(gpu, run); });
  return static_cast<std::size_t>(with_room) >= GpusOf(run);
}

std::vector<int> DeviceRoom::Take(const Run& run) {
  std::vector<int> gpus(gpus_.size());
  std::iota(gpus.begin(), gpus.end(), 0);
  std::erase_if(gpus, [&](int gpu) { return !HasRoom(At(gpu), run); });
  std::stable_sort(gpus.begin(), gpus.end(), [&](int a, int b) { return At(a).runs < At(b).runs; });
  gpus.resize(std::min(gpus.size(), GpusOf(run)));
  std::sort(gpus.begin(), gpus.end());
  for (const int gpu : gpus) {
    ++At(gpu).runs;
    At(gpu).used_bytes += BytesOf(run);
  }
  return gpus;
}

void DeviceRoom::Give(const Run& run, const std::vector<int>& gpus) {
  for (const int gpu : gpus) {
    --At(gpu).runs;
    At(gpu).used_bytes -= BytesOf(run);
  }
}

std::string DeviceRoom::Visible(const std::vector<int>& gpus, const std::string& own) const {
  if (gpus.empty() || gpus.size() == gpus_.size()) return "";
  std::vector<std::string> names, visible;
  std::istringstream text(own);
  for (std::string name; std::getline(text, name, ',');) names.push_back(name);
  for (const int gpu : gpus) {
    const auto i = static_cast<std::size_t>(gpu);
    visible.push_back(i < names.size() ? names[i] : std::to_string(gpu));
  }
  return Join(visible, ",");
}

}  // namespace trainwreck
