#include "trainer/ranks/bucket.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

namespace trainwreck {
namespace {

void ReduceBucket(Communicator& communicator, const std::vector<at::Tensor>& tensors,
                  double active) {
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  // Always a copy, even of one tensor: a peer may still read the buffer while this rank goes on to
  // write.
  at::Tensor bucket = at::cat(flat);
  communicator.AllReduce(bucket, Reduction::kSum);
  bucket.div_(active);
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(bucket.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

}  // namespace

void AllReduceMean(Communicator& communicator, const std::vector<at::Tensor>& tensors,
                   std::int64_t bucket_bytes, double active) {
  at::NoGradGuard no_grad;
  if (communicator.world_size() == 1) return;
  std::vector<at::Tensor> bucket;
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const std::int64_t size = static_cast<std::int64_t>(tensor.nbytes());
    if (!bucket.empty() &&
        (bytes + size > bucket_bytes || bucket[0].scalar_type() != tensor.scalar_type())) {
      ReduceBucket(communicator, bucket, active);
      bucket.clear();
      bytes = 0;
    }
    bucket.push_back(tensor);
    bytes += size;
  }
  if (!bucket.empty()) ReduceBucket(communicator, bucket, active);
}

}  // namespace trainwreck
