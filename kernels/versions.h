// The kernels by instruction set, for their tests and benchmarks.
#pragma once

#include <cstdint>

#include "kernels/corrupt.h"
#include "kernels/cpu.h"
#include "kernels/tensor.h"
#include "kernels/tensor_stats.h"

namespace trainwreck::kernels {

// The public functions of the same names, for one instruction set. `set` must be available.
TensorStats ComputeTensorStats(const TensorView& tensor, InstructionSet set);
ChangeStats CompareTensors(const float* now, const float* before, std::int64_t count,
                           InstructionSet set);
std::uint64_t DigestPart(const void* data, std::int64_t bytes, std::int64_t first_word,
                         InstructionSet set);
CorruptionReport Corrupt(const MutableTensorView& tensor, const Corruption& corruption,
                         InstructionSet set);

}  // namespace trainwreck::kernels
