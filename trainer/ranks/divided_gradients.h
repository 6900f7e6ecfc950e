// ZeRO, stage 2 (Rajbhandari et al. 2020): the gradients are divided among the ranks as the
// optimizer's state is. As soon as the backward pass is done with a bucket of gradients, each part
// of it is summed on the rank that owns it, and the bucket is freed: no rank ever has the gradients
// of the whole model.
//
//   DividedGradients gradients(communicator, division, bucket_bytes);
//   gradients.Begin(micro_batches, share, active);
//   for (const at::Tensor& loss : losses) {
//     loss.backward();
//     gradients.EndMicroBatch();
//   }
//   gradients.Finish();  // division.own() have gradients: means over the ranks
//
// Each micro-batch is reduced for itself, since its gradients would wait for the next one whole.
#pragma once

#include <cstdint>
#include <optional>

#include "trainer/optimizers/division.h"
#include "trainer/parts.h"
#include "trainer/ranks/overlapped_reduction.h"

namespace trainwreck {

class DividedGradients {
 public:
  // Both references must outlive it. `in_thread`: buckets are reduced beside the backward pass, and
  // the communicator must then not be called within it.
  DividedGradients(Communicator& communicator, const Division& division, std::int64_t bucket_bytes,
                   bool in_thread = false, std::optional<at::ScalarType> sent_dtype = {});

  // All ranks make as many micro-batches; one that has fewer sends zeros for the others. A gradient
  // is multiplied by `share` before it is added up, and the sum over the ranks divided by `active`.
  void Begin(int micro_batches, double share, double active);
  void EndMicroBatch();  // sends what its backward pass did not reach, and waits
  void Finish();
  // Seconds that reductions since Begin() took, and those of them that EndMicroBatch() waited for.
  double busy_s() const { return busy_s_; }
  double waited_s() const { return waited_s_; }

 private:
  void Reduce(OverlappedReduction::Gradients gradients, double active);

  Communicator& communicator_;
  const Division& division_;
  std::optional<at::ScalarType> sent_dtype_;
  std::vector<std::size_t> trained_;  // numbers of parameters
  int micro_batches_ = 0;             // still to come, that in progress among them
  double share_ = 1, active_ = 1;
  double busy_s_ = 0, waited_s_ = 0;
  OverlappedReduction reduction_;
};

}  // namespace trainwreck
