#include "trainer/devices/cpu_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstring>
#include <mutex>

namespace trainwreck {
namespace {

// In front of every block, since a deleter is told no size. As long as LibTorch's alignment.
struct alignas(64) Header {
  std::int64_t bytes;
};

struct Counter {
  std::atomic<std::int64_t> allocated_bytes{0};
  std::atomic<std::int64_t> peak_bytes{0};
  std::atomic<std::int64_t> limit_bytes{0};
  std::mutex mutex;  // of the refusal alone
  std::optional<MemoryRefusal> refusal;
};

Counter& TheCounter() {
  static auto* counter = new Counter();  // tensors may outlive every static object
  return *counter;
}

void Refuse(Counter& counter, const MemoryRefusal& refusal) {
  {
    std::lock_guard lock(counter.mutex);
    counter.refusal = refusal;
  }
  TORCH_CHECK_WITH(OutOfMemoryError, false, "CPU out of memory. Tried to allocate ",
                   refusal.requested_bytes, " B; ", refusal.allocated_bytes,
                   " B are allocated, the limit is ", refusal.limit_bytes, " B.");
}

void Add(std::int64_t bytes) {
  Counter& counter = TheCounter();
  const std::int64_t now =
      counter.allocated_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const std::int64_t limit = counter.limit_bytes.load(std::memory_order_relaxed);
  if (limit > 0 && now > limit) {
    counter.allocated_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    Refuse(counter, {bytes, now - bytes, limit});
  }
  std::int64_t peak = counter.peak_bytes.load(std::memory_order_relaxed);
  while (now > peak &&
         !counter.peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void Remove(std::int64_t bytes) {
  TheCounter().allocated_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

c10::Allocator* LibTorchAllocator() {
  static c10::Allocator* allocator = c10::GetDefaultCPUAllocator();
  return allocator;
}

void Free(void* data) {
  if (data == nullptr) return;
  Header* header = static_cast<Header*>(data) - 1;
  Remove(header->bytes);
  LibTorchAllocator()->raw_deallocate(header);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &Free, c10::Device(c10::kCPU)};
    Add(static_cast<std::int64_t>(bytes));
    void* block = nullptr;
    try {
      block = LibTorchAllocator()->raw_allocate(sizeof(Header) + bytes);
    } catch (...) {
      Remove(static_cast<std::int64_t>(bytes));
      throw;
    }
    auto* header = static_cast<Header*>(block);
    header->bytes = static_cast<std::int64_t>(bytes);
    return {header + 1, header + 1, &Free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void CountCpuMemory() {
  [[maybe_unused]] static const bool done = [] {
    c10::SetCPUAllocator(new CountingAllocator(), /*priority=*/1);
    return true;
  }();
}

CpuMemoryUse CpuMemory() {
  const Counter& counter = TheCounter();
  return {.allocated_bytes = counter.allocated_bytes.load(std::memory_order_relaxed),
          .peak_bytes = counter.peak_bytes.load(std::memory_order_relaxed),
          .limit_bytes = counter.limit_bytes.load(std::memory_order_relaxed)};
}

void ResetCpuMemoryPeak() {
  Counter& counter = TheCounter();
  counter.peak_bytes.store(counter.allocated_bytes.load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
}

void LimitCpuMemory(std::int64_t bytes) {
  TheCounter().limit_bytes.store(bytes, std::memory_order_relaxed);
}

std::optional<MemoryRefusal> LastCpuRefusal() {
  Counter& counter = TheCounter();
  std::lock_guard lock(counter.mutex);
  return counter.refusal;
}

}  // namespace trainwreck
