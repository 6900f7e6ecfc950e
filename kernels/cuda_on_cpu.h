// Runs CUDA kernels on the CPU, for tests on machines without a GPU: it stands in for the few words
// of CUDA that the kernels here use. Threads of a block are fibers that change at shuffles and
// barriers, so the indexing and the order of every sum are those of the device. Streams are queues
// that do nothing until someone asks (IsDone runs one entry, WaitFor all), so code that relies on
// work being done early fails. What it cannot show: races between threads, alignment faults, speed.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "kernels/cuda_calls.h"

// The words are CUDA's, also those that only a compiler may define.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(threads)
// NOLINTEND(bugprone-reserved-identifier)

namespace trainwreck::kernels::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

struct Index {
  unsigned x = 0;
};
inline Index threadIdx, blockIdx, blockDim;

struct alignas(8) uint2 {
  std::uint32_t x, y;
};
struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};

void __syncthreads();  // NOLINT(bugprone-reserved-identifier)
// The bits that the thread with lane `lane ^ mask` of this warp passes in the same call.
std::uint64_t ExchangeBits(std::uint64_t bits, unsigned mask);

template <typename T>
T __shfl_xor_sync(unsigned, T value, unsigned mask) {  // NOLINT(bugprone-reserved-identifier)
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = ExchangeBits(bits, mask);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
T atomicAdd(T* address, T value) {
  const T before = *address;
  *address += value;
  return before;
}

// Puts `thread`, run by every thread of every block, into the stream's queue.
void Enqueue(std::function<void()> thread, unsigned blocks, unsigned threads, Stream stream);

template <typename... Parameters>
void Launch(void (*kernel)(Parameters...), std::int64_t blocks, unsigned threads, Stream stream,
            std::type_identity_t<Parameters>... arguments) {
  Enqueue([=] { kernel(arguments...); }, static_cast<unsigned>(blocks), threads, stream);
}

}  // namespace trainwreck::kernels::cuda
