#include "trainer/devices/cpu_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace trainwreck {
namespace {

// In front of every block, since a deleter is told no size. As long as LibTorch's alignment.
struct alignas(64) Header {
  std::int64_t bytes;
  MemoryOwner owner;
  std::uint8_t site;
  std::uint16_t part;  // of the forward pass, for activations
  bool is_counted;
};
static_assert(kMemorySites <= 256);

using Counts = std::array<std::atomic<std::int64_t>, kMemoryOwners>;

// Bytes by a number, of which the first few are in use.
template <std::size_t kNumbers>
class NumberedCounts {
 public:
  void Add(std::size_t number, std::int64_t bytes) {
    std::size_t used = used_.load(std::memory_order_relaxed);
    while (number >= used &&
           !used_.compare_exchange_weak(used, number + 1, std::memory_order_relaxed)) {
    }
    bytes_[number].fetch_add(bytes, std::memory_order_relaxed);
  }
  void CopyFrom(const NumberedCounts& other) {
    const std::size_t used = other.used_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      bytes_[i].store(other.bytes_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    used_.store(used, std::memory_order_relaxed);
  }
  std::vector<std::int64_t> values() const {
    const std::size_t used = used_.load(std::memory_order_relaxed);
    std::vector<std::int64_t> values(used);
    for (std::size_t i = 0; i < used; ++i) values[i] = bytes_[i].load(std::memory_order_relaxed);
    return values;
  }

 private:
  std::atomic<std::size_t> used_{0};  // none behind these
  std::array<std::atomic<std::int64_t>, kNumbers> bytes_{};
};

std::atomic<std::int64_t>& Of(Counts& counts, MemoryOwner owner) {
  return counts[static_cast<std::size_t>(owner)];
}

MemoryByOwner ValuesOf(const Counts& counts) {
  MemoryByOwner values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = counts[i].load(std::memory_order_relaxed);
  }
  return values;
}

void Copy(const Counts& from, Counts& to) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i].store(from[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

struct Counter {
  std::atomic<std::int64_t> allocated_bytes{0};
  std::atomic<std::int64_t> peak_bytes{0};
  std::atomic<std::int64_t> limit_bytes{0};
  Counts by_owner{};
  Counts peak_by_owner{};
  NumberedCounts<kForwardParts> by_part, peak_by_part;  // of activations
  NumberedCounts<kMemorySites> by_site, peak_by_site;
  std::mutex mutex;  // of the refusal and the moments
  std::optional<MemoryRefusal> refusal;
  std::atomic<bool> follows{false};
  bool rises = false;  // the last change was an allocation
  std::vector<std::int64_t> moments;
};

Counter& TheCounter() {
  static auto* counter = new Counter();  // tensors may outlive every static object
  return *counter;
}

// "83% activations, 17% parameters": the largest first, and none below 1%.
std::string SharesOf(const MemoryByOwner& bytes) {
  const std::int64_t all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  std::vector<std::pair<std::int64_t, std::string>> shares;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (all <= 0 || bytes[i] * 100 < all) continue;
    shares.emplace_back(bytes[i] * 100 / all, ToString(static_cast<MemoryOwner>(i)));
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [percent, owner] : shares) {
    text += (text.empty() ? "" : ", ") + std::to_string(percent) + "% " + owner;
  }
  return text.empty() ? "nothing" : text;
}

void Refuse(Counter& counter, const MemoryRefusal& refusal) {
  {
    std::lock_guard lock(counter.mutex);
    counter.refusal = refusal;
  }
  TORCH_CHECK_WITH(OutOfMemoryError, false, "CPU out of memory. Tried to allocate ",
                   refusal.requested_bytes, " B; ", refusal.allocated_bytes,
                   " B are allocated, the limit is ", refusal.limit_bytes,
                   " B. In use: ", SharesOf(refusal.by_owner), ".");
}

void CopyToPeak(Counter& counter) {
  Copy(counter.by_owner, counter.peak_by_owner);
  counter.peak_by_part.CopyFrom(counter.by_part);
  counter.peak_by_site.CopyFrom(counter.by_site);
}

void Count(Counter& counter, std::int64_t bytes, const Header& block) {
  Of(counter.by_owner, block.owner).fetch_add(bytes, std::memory_order_relaxed);
  counter.by_site.Add(block.site, bytes);
  if (block.owner == MemoryOwner::kActivations) counter.by_part.Add(block.part, bytes);
}

void Follow(Counter& counter, bool rises, std::int64_t before) {
  if (!counter.follows.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(counter.mutex);
  if (counter.rises && !rises) counter.moments.push_back(before);
  counter.rises = rises;
}

void Add(const Header& block) {
  if (!block.is_counted) return;
  const std::int64_t bytes = block.bytes;
  Counter& counter = TheCounter();
  const std::int64_t now =
      counter.allocated_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const std::int64_t limit = counter.limit_bytes.load(std::memory_order_relaxed);
  if (limit > 0 && now > limit) {
    counter.allocated_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    Refuse(counter, {bytes, now - bytes, limit, ValuesOf(counter.by_owner),
                     counter.by_part.values(), counter.by_site.values()});
  }
  Count(counter, bytes, block);
  Follow(counter, /*rises=*/true, now - bytes);
  std::int64_t peak = counter.peak_bytes.load(std::memory_order_relaxed);
  while (now > peak) {
    if (counter.peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
      CopyToPeak(counter);
      break;
    }
  }
}

void Remove(const Header& block) {
  if (!block.is_counted) return;
  Counter& counter = TheCounter();
  const std::int64_t before =
      counter.allocated_bytes.fetch_sub(block.bytes, std::memory_order_relaxed);
  Count(counter, -block.bytes, block);
  Follow(counter, /*rises=*/false, before);
}

c10::Allocator* LibTorchAllocator() {
  static c10::Allocator* allocator = c10::GetDefaultCPUAllocator();
  return allocator;
}

void Free(void* data) {
  if (data == nullptr) return;
  Header* header = static_cast<Header*>(data) - 1;
  Remove(*header);
  LibTorchAllocator()->raw_deallocate(header);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &Free, c10::Device(c10::kCPU)};
    const Header header = {.bytes = static_cast<std::int64_t>(bytes),
                           .owner = CurrentMemoryOwner(),
                           .site = static_cast<std::uint8_t>(CurrentMemorySite()),
                           .part = static_cast<std::uint16_t>(CurrentForwardPart()),
                           .is_counted = MemoryIsCounted()};
    Add(header);
    void* block = nullptr;
    try {
      block = LibTorchAllocator()->raw_allocate(sizeof(Header) + bytes);
    } catch (...) {
      Remove(header);
      throw;
    }
    auto* in_front = new (block) Header(header);
    return {in_front + 1, in_front + 1, &Free, c10::Device(c10::kCPU)};
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

void FollowCpuMemory() { TheCounter().follows = true; }

CpuMemoryUse CpuMemory() {
  Counter& counter = TheCounter();
  std::vector<std::int64_t> moments;
  if (counter.follows) {
    std::lock_guard lock(counter.mutex);
    moments = counter.moments;
    if (counter.rises) moments.push_back(counter.allocated_bytes);
  }
  return {.allocated_bytes = counter.allocated_bytes.load(std::memory_order_relaxed),
          .peak_bytes = counter.peak_bytes.load(std::memory_order_relaxed),
          .limit_bytes = counter.limit_bytes.load(std::memory_order_relaxed),
          .by_owner = ValuesOf(counter.by_owner),
          .peak_by_owner = ValuesOf(counter.peak_by_owner),
          .peak_by_part = counter.peak_by_part.values(),
          .peak_by_site = counter.peak_by_site.values(),
          .moments = std::move(moments)};
}

void ResetCpuMemoryPeak() {
  Counter& counter = TheCounter();
  counter.peak_bytes.store(counter.allocated_bytes.load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
  CopyToPeak(counter);
  std::lock_guard lock(counter.mutex);
  counter.moments.clear();
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
