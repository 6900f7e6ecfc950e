// What is done when a device's memory does not suffice: LibTorch keeps freed memory in a cache of
// its own, which our buffers cannot see. It is emptied, and the allocation is made once more; if
// that fails too, it is out of memory as LibTorch's own allocations are, with the device's numbers.
// The second try is not run on a GPU yet.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kernels/out_of_memory.h"

namespace trainwreck {

struct DeviceMemoryNumbers {
  std::int64_t allocated_bytes = 0;  // of tensors
  std::int64_t reserved_bytes = 0;   // by LibTorch, its cache included
  std::int64_t free_bytes = 0;       // of the device, other processes' use subtracted
  std::int64_t limit_bytes = 0;      // the device's memory, or the share that is allowed
};

struct DeviceRefusal {
  std::int64_t requested_bytes = 0;
  DeviceMemoryNumbers numbers;
};

// The allocator, as far as it matters here. Tests have their own.
struct DeviceCache {
  std::function<void()> empty;
  std::function<DeviceMemoryNumbers()> numbers;
};

// The last allocation of this process that failed for good.
std::optional<DeviceRefusal> LastDeviceRefusal();
void RecordDeviceRefusal(const DeviceRefusal& refusal);

// Throws c10::OutOfMemoryError, after it has recorded the refusal.
[[noreturn]] void RefuseDeviceMemory(std::int64_t requested_bytes, const DeviceCache& cache);

// The result of `call`, which is made a second time when its first one throws OutOfDeviceMemory.
template <typename Call>
auto CallWithDeviceMemory(const DeviceCache& cache, const Call& call) {
  try {
    return call();
  } catch (const kernels::OutOfDeviceMemory&) {
    cache.empty();
  }
  try {
    return call();
  } catch (const kernels::OutOfDeviceMemory& error) {
    RefuseDeviceMemory(static_cast<std::int64_t>(error.bytes()), cache);
  }
}

inline constexpr char kExpandableSegments[] = "expandable_segments:True";

// What LibTorch's allocator of a GPU is told, "max_split_size_mb:64,expandable_segments:True": by the
// environment (PYTORCH_CUDA_ALLOC_CONF, PYTORCH_ALLOC_CONF), and by the recipe. Empty: nothing.
std::string AllocatorSettings(bool expandable_segments);

}  // namespace trainwreck
