// corrupt.h on a GPU: the same elements, changed to the same bits. It waits for the device: a fault
// acts once, and its evidence must be there before the run goes on.
//
//   CudaCorruptor corruptor;  // keeps memory for the evidence: make one and use it again
//   CorruptionReport report = corruptor.Corrupt(tensor, corruption, stream);
#pragma once

#include <memory>

#include "kernels/corrupt.h"

namespace trainwreck::kernels {

class CudaCorruptor {
 public:
  CudaCorruptor();
  ~CudaCorruptor();

  // `tensor` lies in device memory; `stream` is a cudaStream_t. Throws as Corrupt does, and
  // std::runtime_error for errors of CUDA. Only the first call allocates.
  CorruptionReport Corrupt(const MutableTensorView& tensor, const Corruption& corruption,
                           void* stream);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace trainwreck::kernels
