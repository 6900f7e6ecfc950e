// tensor_stats.h on a GPU, for every step of a training loop: at most two launches whatever the
// number of tensors, and no call that waits.
//
//   CudaTensorStats statistics;
//   statistics.Launch(gradients, step, stream);             // pointers into device memory
//   while (auto result = statistics.Poll()) Record(*result);  // of earlier steps, if done
//   ...
//   while (auto result = statistics.Wait()) Record(*result);  // at the end of the run
//
// The sums have the order that tensor_stats.h defines, whatever the device: same bits as on the
// CPU. One object is for one thread and one device, the current one. See cuda_calls.h on builds
// without CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/tensor.h"
#include "kernels/tensor_stats.h"

namespace trainwreck::kernels {

namespace cuda {
class Ring;
struct RingSlot;
}  // namespace cuda

class CudaTensorStats {
 public:
  struct Result {
    std::int64_t tag = 0;
    std::vector<TensorStats> stats;
  };

  // `slots` launches can be in flight.
  explicit CudaTensorStats(int slots = 4);
  ~CudaTensorStats();  // waits for what is in flight

  // Enqueues the statistics on `stream` (a cudaStream_t). The tensors must live until the stream is
  // past this point. False, and nothing enqueued, when all slots are in flight: poll, or skip this
  // step. The first launches and those with more elements than ever before allocate, which
  // synchronises.
  bool Launch(std::span<const TensorView> tensors, std::int64_t tag, void* stream);

  std::optional<Result> Poll();  // the oldest in flight when it is done; never waits
  std::optional<Result> Wait();  // the oldest in flight; waits for it. Empty: none is in flight
  int in_flight() const;

 private:
  std::optional<Result> Take(bool wait);

  std::unique_ptr<cuda::Ring> ring_;
};

}  // namespace trainwreck::kernels
