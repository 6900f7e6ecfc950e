#include "trainer/ranks/bucket.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

namespace trainwreck {

at::Tensor& GradientOf(const at::Tensor& parameter) {
  at::Tensor& gradient = parameter.mutable_grad();
  if (!gradient.defined()) {
    gradient = at::zeros_like(parameter, parameter.options().dtype(parameter.grad_dtype()));
  }
  return gradient;
}

std::vector<std::vector<at::Tensor>> IntoBuckets(const std::vector<at::Tensor>& tensors,
                                                 std::int64_t bucket_bytes) {
  std::vector<std::vector<at::Tensor>> buckets;
  std::int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const auto size = static_cast<std::int64_t>(tensor.nbytes());
    if (buckets.empty() || bytes + size > bucket_bytes ||
        buckets.back()[0].scalar_type() != tensor.scalar_type()) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(tensor);
    bytes += size;
  }
  return buckets;
}

void ReduceBucket(Communicator& communicator, const std::vector<at::Tensor>& tensors, double active,
                  std::optional<at::ScalarType> sent_dtype) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
  // Always a copy, even of one tensor: a peer may still read the buffer while this rank goes on to
  // write.
  at::Tensor bucket = at::cat(flat);
  const at::ScalarType dtype = bucket.scalar_type();
  if (sent_dtype) bucket = bucket.to(*sent_dtype);
  communicator.AllReduce(bucket, Reduction::kSum);
  bucket = bucket.to(dtype).div_(active);
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    tensor.copy_(bucket.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

void AllReduceMean(Communicator& communicator, const std::vector<at::Tensor>& tensors,
                   std::int64_t bucket_bytes, double active,
                   std::optional<at::ScalarType> sent_dtype) {
  if (communicator.world_size() == 1) return;
  for (const auto& bucket : IntoBuckets(tensors, bucket_bytes)) {
    ReduceBucket(communicator, bucket, active, sent_dtype);
  }
}

}  // namespace trainwreck
