// The include of .cu files for device code. It gives the toolkit's declarations or, where a test
// runs the kernels on the CPU, replacements for them; and Launch, which starts a kernel.
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

// The entry that holds `piece`, from a table sorted by `first`: the last entry that begins at or
// before it, since empty entries come first.
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
