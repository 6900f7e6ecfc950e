// Runs CUDA kernels on the CPU, for tests on machines without a GPU: it stands in for the few words
// of CUDA that the kernels here use. Threads of a block are fibers that change at shuffles and
// barriers, so the indexing and the order of every sum are those of the device. It is stricter than
// a device:
// - Between two barriers the threads of a block run one after another in a random order, and so do
//   the blocks. A seed repeats it.
// - A barrier that not all threads of the block reach, or that they reach at different lines, is an
//   error. So is a shuffle with a mask that leaves out its caller or the lane that it reads, or
//   that names a lane which does not come to the same shuffle.
// - Shared memory is filled with NaN when a block begins. (No template has any: the compiler would
//   give it a place of its own.)
// - Device memory ends at a page that cannot be touched, and the host cannot touch device memory at
//   all. Copies want pinned memory.
// - Loads at addresses that do not fit their type end the program.
// - Streams are queues that do nothing until someone asks (IsDone runs one entry, WaitFor all), so
//   code that relies on work being done early fails. Errors are late and sticky, as a device's: the
//   call that waits reports them, and every later call reports them again.
// What it cannot show: races between threads that no order of them shows (kernels_tsan_test looks
// for those), races between blocks, speed.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <type_traits>

#include "kernels/cuda_calls.h"

// The words are CUDA's, also those that only a compiler may define.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static __attribute__((section("cuda_shared")))
#define __launch_bounds__(threads)
// NOLINTEND(bugprone-reserved-identifier)

namespace trainwreck::kernels::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct Index {
  unsigned x = 0;
};
#ifdef TRAINWRECK_CUDA_THREADS
inline thread_local Index threadIdx, blockIdx, blockDim;
#else
inline Index threadIdx, blockIdx, blockDim;
#endif

struct alignas(8) uint2 {
  std::uint32_t x, y;
};
struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};

using Site = std::source_location;

void __syncthreads(Site site = Site::current());  // NOLINT(bugprone-reserved-identifier)
// The bits that the thread with lane `lane ^ lane_mask` of this warp passes in the same call.
std::uint64_t ExchangeBits(unsigned mask, std::uint64_t bits, unsigned lane_mask, Site site);

template <typename T>
T __shfl_xor_sync(unsigned mask, T value,
                  unsigned lane_mask,  // NOLINT(bugprone-reserved-identifier)
                  Site site = Site::current()) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = ExchangeBits(mask, bits, lane_mask, site);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
T atomicAdd(T* address, T value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

// Puts `thread`, run by every thread of every block, into the stream's queue.
void Enqueue(std::function<void()> thread, unsigned blocks, unsigned threads, Stream stream);

template <typename... Parameters>
void Launch(void (*kernel)(Parameters...), std::int64_t blocks, unsigned threads, Stream stream,
            std::type_identity_t<Parameters>... arguments) {
  Enqueue([=] { kernel(arguments...); }, static_cast<unsigned>(blocks), threads, stream);
}

// The order of threads and blocks from now on; the first one is that of seed 1.
void SetSchedule(std::uint64_t seed);
// Refuses the allocation with this number, from 1 on, of those that follow, device and pinned
// memory together, and no other one; 0: none.
void RefuseAllocation(int number);
bool HasRefused();          // the one that RefuseAllocation named has come
std::size_t LiveBuffers();  // that are allocated and not freed
// Forgets an error, and what was queued: a test that wants it goes on.
void ResetDevice();

}  // namespace trainwreck::kernels::cuda
