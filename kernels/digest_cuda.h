// digest.h on a GPU: the same values, in one launch whatever the number of tensors, without
// waiting. Used as CudaTensorStats (tensor_stats_cuda.h); the same rules hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/tensor.h"

namespace trainwreck::kernels {

namespace cuda {
class Ring;
}

class CudaDigests {
 public:
  struct Result {
    std::int64_t tag = 0;
    std::vector<std::uint64_t> digests;  // of each tensor; CombineDigests makes one of them
  };

  explicit CudaDigests(int slots = 4);
  ~CudaDigests();

  bool Launch(std::span<const TensorView> tensors, std::int64_t tag, void* stream);
  std::optional<Result> Poll();
  std::optional<Result> Wait();
  int in_flight() const;

 private:
  std::optional<Result> Take(bool wait);

  std::unique_ptr<cuda::Ring> ring_;
};

}  // namespace trainwreck::kernels
