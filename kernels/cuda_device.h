// What a .cu file here includes for its device code: the toolkit's words, or, where the kernels are
// run on the CPU for a test, a stand-in for them; and Launch, which starts a kernel.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "kernels/tensor.h"

#ifdef __CUDACC__

#include <type_traits>

#include "kernels/cuda_calls.h"

namespace trainwreck::kernels::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

template <typename... Parameters>
void Launch(void (*kernel)(Parameters...), std::int64_t blocks, unsigned threads, Stream stream,
            std::type_identity_t<Parameters>... arguments) {
  void* pointers[] = {&arguments...};
  LaunchKernel(reinterpret_cast<const void*>(kernel), static_cast<unsigned>(blocks), threads,
               pointers, stream);
}

}  // namespace trainwreck::kernels::cuda

#else
#include "kernels/cuda_on_cpu.h"
#endif

namespace trainwreck::kernels::cuda {

// A GPU reads elements at multiples of their size only.
inline void RequireAligned(const TensorView& tensor) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % ItemBytes(tensor.dtype) == 0) return;
  throw std::invalid_argument("a tensor on a GPU must lie at a multiple of its element's size");
}

// Of entries that are sorted by their `first` piece, the one that holds `piece`: the last that
// begins at or before it, since empty ones come before the next.
template <typename Entry>
__device__ const Entry& EntryOf(const Entry* table, int entries, std::int64_t piece) {
  int low = 0, high = entries;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table[middle].first <= piece ? low : high) = middle;
  }
  return table[low];
}

}  // namespace trainwreck::kernels::cuda
