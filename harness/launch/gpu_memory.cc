#include "harness/launch/gpu_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

namespace trainwreck {
namespace {

// NVML's binary interface, as its reference manual gives it.
using NvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr unsigned kMostText = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE and that of a name
struct NvmlMemory {                 // nvmlMemory_t
  unsigned long long total, free, used;
};

constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
constexpr std::int64_t kWorthSaying = kGibibyte;

struct DriverCalls {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned* gpus) = nullptr;
  int (*handle)(unsigned index, NvmlDevice* device) = nullptr;
  int (*name)(NvmlDevice device, char* text, unsigned bytes) = nullptr;
  int (*uuid)(NvmlDevice device, char* text, unsigned bytes) = nullptr;
  int (*memory)(NvmlDevice device, NvmlMemory* memory) = nullptr;
};

template <typename Function>
bool Bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool BindAll(void* library, DriverCalls& driver) {
  return Bind(library, "nvmlInit_v2", driver.init) &&
         Bind(library, "nvmlShutdown", driver.shutdown) &&
         Bind(library, "nvmlDeviceGetCount_v2", driver.count) &&
         Bind(library, "nvmlDeviceGetHandleByIndex_v2", driver.handle) &&
         Bind(library, "nvmlDeviceGetName", driver.name) &&
         Bind(library, "nvmlDeviceGetUUID", driver.uuid) &&
         Bind(library, "nvmlDeviceGetMemoryInfo", driver.memory);
}

GpuMemory MemoryOf(const DriverCalls& driver, unsigned index) {
  NvmlDevice device = nullptr;
  char name[kMostText] = "", uuid[kMostText] = "";
  NvmlMemory memory = {};
  if (driver.handle(index, &device) != kSuccess ||
      driver.name(device, name, kMostText) != kSuccess ||
      driver.uuid(device, uuid, kMostText) != kSuccess ||
      driver.memory(device, &memory) != kSuccess) {
    return {};
  }
  return {uuid, name, static_cast<std::int64_t>(memory.free)};
}

bool IsGpu(const DeviceInfo& device) { return device.kind == "cuda"; }

// The GPU that an entry of CUDA_VISIBLE_DEVICES names: a number, or how its UUID begins.
const GpuMemory* Named(const std::string& entry, const std::vector<GpuMemory>& gpus) {
  std::size_t index = 0;
  const char* const end = entry.data() + entry.size();
  const std::from_chars_result number = std::from_chars(entry.data(), end, index);
  if (number.ec == std::errc() && number.ptr == end) {
    return index < gpus.size() ? &gpus[index] : nullptr;
  }
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const GpuMemory& gpu) {
    return !entry.empty() && gpu.uuid.starts_with(entry);
  });
  return found == gpus.end() ? nullptr : &*found;
}

}  // namespace

std::vector<GpuMemory> ReadGpuMemory(const std::string& library) {
  std::vector<GpuMemory> gpus;
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return gpus;
  DriverCalls driver;
  if (BindAll(loaded, driver) && driver.init() == kSuccess) {
    unsigned count = 0;
    if (driver.count(&count) != kSuccess) count = 0;
    for (unsigned i = 0; i < count; ++i) gpus.push_back(MemoryOf(driver, i));
    driver.shutdown();
  }
  dlclose(loaded);
  return gpus;
}

std::vector<std::int64_t> UsedByOthers(const std::vector<DeviceInfo>& devices,
                                       const std::vector<GpuMemory>& gpus, const char* visible) {
  std::vector<const GpuMemory*> seen;  // as CUDA numbers them
  if (visible == nullptr) {
    for (const GpuMemory& gpu : gpus) seen.push_back(&gpu);
  } else {
    std::istringstream text(visible);
    for (std::string entry; std::getline(text, entry, ',');) seen.push_back(Named(entry, gpus));
  }
  std::vector<std::int64_t> used;
  std::size_t number = 0;
  for (const DeviceInfo& device : devices) {
    const GpuMemory* gpu = IsGpu(device) && number < seen.size() ? seen[number] : nullptr;
    if (IsGpu(device)) ++number;
    // Without CUDA_DEVICE_ORDER=PCI_BUS_ID, CUDA may number GPUs of several kinds otherwise.
    const bool is_known = gpu != nullptr && !gpu->name.empty() && gpu->name == device.name;
    used.push_back(is_known ? std::max(std::int64_t{0}, device.memory_bytes - gpu->free_bytes) : 0);
  }
  return used;
}

std::vector<std::int64_t> UsedByOthers(const std::vector<DeviceInfo>& devices) {
  if (std::none_of(devices.begin(), devices.end(), IsGpu)) {
    return std::vector<std::int64_t>(devices.size());
  }
  static const std::vector<GpuMemory> gpus = ReadGpuMemory();
  return UsedByOthers(devices, gpus, std::getenv("CUDA_VISIBLE_DEVICES"));
}

std::vector<DeviceInfo> LessOthers(std::vector<DeviceInfo> devices,
                                   const std::vector<std::int64_t>& used) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (used[i] == 0) continue;
    devices[i].memory_bytes = std::max(std::int64_t{1}, devices[i].memory_bytes - used[i]);
  }
  return devices;
}

std::string SayOthers(const DeviceInfo& device, std::int64_t used_bytes) {
  if (used_bytes < kWorthSaying) return "";
  return fmt::format("other programs use {:.1f} of its {:.1f} GiB",
                     static_cast<double>(used_bytes) / kGibibyte,
                     static_cast<double>(device.memory_bytes) / kGibibyte);
}

}  // namespace trainwreck
