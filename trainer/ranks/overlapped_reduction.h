// The reduction of gradients beside the backward pass (Li et al. 2020, "PyTorch Distributed"): a
// bucket is sent, in a thread and on a stream of its own, as soon as the backward pass is done with
// its gradients, while it still computes those of earlier layers.
//
//   OverlappedReduction reduction(communicator, parameters, bucket_bytes);
//   reduction.Begin(/*backward_passes=*/1, share, active);
//   loss.backward();
//   reduction.Finish();  // gradients are means over the ranks now
//
// Buckets are those of AllReduceMean over the same gradients, so the means have the same bits. They
// are sent from the last to the first, on each rank alike, whatever order gradients come in.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/optimizers/in_backward.h"
#include "trainer/parts.h"
#include "trainer/ranks/bucket.h"
#include "trainer/ranks/side_stream.h"
#include "trainer/ranks/worker_threads.h"

namespace trainwreck {

class OverlappedReduction {
 public:
  // The gradients of a bucket of parameters, the first of which has this index.
  struct Gradients {
    std::size_t first = 0;
    std::vector<at::Tensor> tensors;
  };
  // What is done with a bucket, and where.
  struct Way {
    // Gets the gradients, multiplied by the share, and the number of active ranks.
    std::function<void(Gradients gradients, double active)> reduce;
    bool takes_gradients = false;  // the parameters have none then
    bool in_thread = true;         // false: within the backward pass itself
  };

  // `parameters`: those that are trained. What is called must outlive it, and the communicator must
  // not be called between Begin() and the end of Finish().
  OverlappedReduction(const NamedTensors& parameters, std::int64_t bucket_bytes, Way way);
  // Means on all ranks.
  OverlappedReduction(Communicator& communicator, const NamedTensors& parameters,
                      std::int64_t bucket_bytes, std::optional<at::ScalarType> sent_dtype = {});

  // From now on a gradient is sent when so many backward passes have added to it: times `share`,
  // and the sum divided by `active`.
  void Begin(int backward_passes, double share, double active);
  // Sends what was not reached as often, and waits. Throws what a collective threw.
  void Finish();
  // Seconds that reductions since Begin() took, and those of them that Finish() waited for.
  double busy_s() const { return busy_s_; }
  double waited_s() const { return waited_s_; }

 private:
  struct Bucket {
    std::size_t first = 0;
    std::vector<at::Tensor> parameters;
    std::size_t missing = 0;  // backward passes have still so many gradients to add to
    std::future<void> sent;
  };
  void Ready(std::size_t bucket);
  void Send(Bucket& bucket);
  void Reduce(Gradients gradients);

  Way way_;
  std::vector<Bucket> buckets_;
  std::size_t unsent_ = 0;  // buckets, the first ones
  bool began_ = false;
  double share_ = 1, active_ = 1;
  double busy_s_ = 0, waited_s_ = 0;
  std::vector<std::unique_ptr<GradientHooks>> hooks_;  // of each bucket
  std::optional<SideStream> stream_;                   // of the thread
  WorkerThreads thread_;
};

}  // namespace trainwreck
