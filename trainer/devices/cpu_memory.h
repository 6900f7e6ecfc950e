// Tensor memory on the CPU, counted to the byte: LibTorch's allocator, with a count of what is
// allocated, a peak, and a limit past which it throws c10::OutOfMemoryError, as a GPU's allocator
// does. Counts are the bytes that were asked for, so they are the same in every run on every
// machine whose kernels ask for the same.
//
//   CountCpuMemory();                // once, before the first tensor
//   LimitCpuMemory(64 << 20);
//   ResetCpuMemoryPeak();  Step();   // CpuMemory().peak_bytes is the step's
//
// Each block also has the owner and the site of the MemoryScope in which it was allocated
// (memory_owner.h), so that a peak or a refusal says what filled the memory.
//
// Counted is every tensor's storage, and kernels' scratch space where they take it from LibTorch;
// not counted are code, graph nodes and oneDNN's own buffers. All functions may be called from any
// thread; a fork goes on from its parent's count.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/memory_owner.h"

namespace trainwreck {

struct CpuMemoryUse {
  std::int64_t allocated_bytes = 0;
  std::int64_t peak_bytes = 0;   // since the last reset
  std::int64_t limit_bytes = 0;  // 0: none
  MemoryByOwner by_owner{};      // of the allocated bytes
  // Of the allocated bytes when the peak was reached. With several threads that allocate at once,
  // perhaps of an allocation later.
  MemoryByOwner peak_by_owner{};
  // Of these, activations by part of the forward pass (SetForwardPart); their sum is theirs.
  std::vector<std::int64_t> peak_by_part = {};
  std::vector<std::int64_t> peak_by_site = {};  // of all, by number (MemorySites)
  // The allocated bytes at each moment since the last reset at which an allocation was followed by
  // something freed: the peak is one of them. Empty: not followed (FollowCpuMemory).
  std::vector<std::int64_t> moments = {};
};

// Puts the counting allocator in place, for the rest of the process. Tensors that are there already
// are not counted. Calling it again changes nothing.
void CountCpuMemory();

// Keeps moments from now on, in this process and its forks: a lock for each allocation.
void FollowCpuMemory();

CpuMemoryUse CpuMemory();
void ResetCpuMemoryPeak();

// An allocation that would make more than `bytes` allocated throws from now on; 0: no limit. What
// is allocated already may be more.
void LimitCpuMemory(std::int64_t bytes);

// The last allocation that the limit refused, with the count at that moment.
struct MemoryRefusal {
  std::int64_t requested_bytes = 0;
  std::int64_t allocated_bytes = 0;
  std::int64_t limit_bytes = 0;
  MemoryByOwner by_owner{};  // of the allocated bytes
  std::vector<std::int64_t> activations_by_part = {};
  std::vector<std::int64_t> by_site = {};
};
std::optional<MemoryRefusal> LastCpuRefusal();

}  // namespace trainwreck
