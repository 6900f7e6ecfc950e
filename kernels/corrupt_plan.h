// The checks and the choice that precede a corruption, on CPU and GPU alike, and the CPU's ways to
// carry it out.
#pragma once

#include "kernels/corrupt_element.h"

namespace trainwreck::kernels {

// Throws std::invalid_argument as Corrupt does.
Selection PlanCorruption(const TensorView& tensor, const Corruption& corruption);

// Changes the selected elements of `data`; returns the number of those whose bits differ now.
using CorruptFunction = std::int64_t (*)(void* data, DType dtype, const Selection& selection,
                                         const Change& change);
CorruptFunction PortableCorrupt();
CorruptFunction Avx2Corrupt();
CorruptFunction Avx512Corrupt();

}  // namespace trainwreck::kernels
