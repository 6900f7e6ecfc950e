// corrupt.h on a GPU: the same elements, changed to the same bits. It waits for the device: a fault
// acts once, and its evidence must be there before the run goes on.
#pragma once

#include "kernels/corrupt.h"

namespace trainwreck::kernels {

// `tensor` lies in device memory; `stream` is a cudaStream_t. Throws as Corrupt does, and
// std::runtime_error for errors of CUDA.
CorruptionReport CorruptCuda(const MutableTensorView& tensor, const Corruption& corruption,
                             void* stream);

}  // namespace trainwreck::kernels
