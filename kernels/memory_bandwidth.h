// What this machine's memory gives to one core, measured in the same run as the kernels: the
// yardstick of their benchmarks.
#pragma once

#include <cstdint>

namespace trainwreck::kernels {

// GB/s of a loop that only reads `bytes` bytes (vector loads and additions, several in flight), the
// best of several passes.
double ReadBandwidth(const void* data, std::int64_t bytes);

// Processor time of this thread, as the benchmarks count: a neighbour's turn on the core is
// nobody's cost.
double ThreadSeconds();

}  // namespace trainwreck::kernels
