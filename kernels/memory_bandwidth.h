// The memory bandwidth of one core of this machine, measured in the same run as the kernels: the
// reference of their benchmarks.
#pragma once

#include <cstdint>

namespace trainwreck::kernels {

// GB/s of a loop that only reads `bytes` bytes (vector loads and additions, several in flight), the
// best of several passes.
double ReadBandwidth(const void* data, std::int64_t bytes);

// The processor time of this thread, which the benchmarks use: time of other processes on the core
// does not count.
double ThreadSeconds();

}  // namespace trainwreck::kernels
