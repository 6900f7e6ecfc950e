#include "trainer/devices/device_memory.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <mutex>

namespace trainwreck {
namespace {

std::mutex mutex;
std::optional<DeviceRefusal> last;

}  // namespace

std::optional<DeviceRefusal> LastDeviceRefusal() {
  const std::lock_guard lock(mutex);
  return last;
}

void RecordDeviceRefusal(const DeviceRefusal& refusal) {
  const std::lock_guard lock(mutex);
  last = refusal;
}

void RefuseDeviceMemory(std::int64_t requested_bytes, const DeviceCache& cache) {
  const DeviceRefusal refusal{requested_bytes, cache.numbers()};
  RecordDeviceRefusal(refusal);
  const DeviceMemoryNumbers& numbers = refusal.numbers;
  TORCH_CHECK_WITH(OutOfMemoryError, false, "device out of memory. Tried to allocate ",
                   requested_bytes, " B for a kernel's buffer, and again with an empty cache; of ",
                   numbers.limit_bytes, " B, ", numbers.free_bytes, " B are free, ",
                   numbers.allocated_bytes, " B are allocated by tensors and ",
                   numbers.reserved_bytes, " B are reserved.");
}

std::string AllocatorSettings(bool expandable_segments) {
  std::string settings;
  const auto add = [&](const std::string& more) {
    if (!more.empty()) settings += (settings.empty() ? "" : ",") + more;
  };
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    if (const char* value = std::getenv(name)) add(value);
  }
  if (expandable_segments) add(kExpandableSegments);
  return settings;
}

}  // namespace trainwreck
