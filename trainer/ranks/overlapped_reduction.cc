#include "trainer/ranks/overlapped_reduction.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "trainer/memory_owner.h"
#include "trainer/stopwatch.h"

namespace trainwreck {

OverlappedReduction::OverlappedReduction(Communicator& communicator, const NamedTensors& parameters,
                                         std::int64_t bucket_bytes,
                                         std::optional<at::ScalarType> sent_dtype)
    : OverlappedReduction(
          parameters, bucket_bytes,
          {.reduce = [&communicator, sent_dtype](const Gradients& gradients, double active) {
            ReduceBucket(communicator, gradients.tensors, active, sent_dtype);
          }}) {}

OverlappedReduction::OverlappedReduction(const NamedTensors& parameters, std::int64_t bucket_bytes,
                                         Way way)
    : way_(std::move(way)), thread_(way_.in_thread ? 1 : 0) {
  if (way_.in_thread && !parameters.empty()) stream_.emplace(parameters[0].second.device());
  std::vector<at::Tensor> gradients;  // as they will be, without memory
  for (const auto& [name, parameter] : parameters) {
    gradients.push_back(at::empty(
        parameter.sizes(), at::TensorOptions().dtype(parameter.grad_dtype()).device(at::kMeta)));
  }
  auto next = parameters.begin();
  for (const auto& shapes : IntoBuckets(gradients, bucket_bytes)) {
    const std::size_t number = buckets_.size();
    const NamedTensors members(next, next + static_cast<std::ptrdiff_t>(shapes.size()));
    next += static_cast<std::ptrdiff_t>(shapes.size());
    Bucket& bucket = buckets_.emplace_back();
    bucket.first = static_cast<std::size_t>(next - parameters.begin()) - shapes.size();
    for (const auto& [name, parameter] : members) bucket.parameters.push_back(parameter);
    hooks_.push_back(
        std::make_unique<GradientHooks>(members, [this, number](std::size_t) { Ready(number); }));
  }
}

void OverlappedReduction::Begin(int backward_passes, double share, double active) {
  share_ = share;
  active_ = active;
  busy_s_ = waited_s_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.parameters.size() * static_cast<std::size_t>(backward_passes);
  }
  unsent_ = buckets_.size();
  began_ = true;
}

void OverlappedReduction::Ready(std::size_t bucket) {
  if (!began_) return;  // a pass that is made for other reasons
  --buckets_[bucket].missing;
  while (unsent_ > 0 && buckets_[unsent_ - 1].missing == 0) Send(buckets_[--unsent_]);
}

void OverlappedReduction::Send(Bucket& bucket) {
  Gradients gradients{.first = bucket.first, .tensors = {}};
  for (const at::Tensor& parameter : bucket.parameters) {
    gradients.tensors.push_back(GradientOf(parameter));
    if (way_.takes_gradients) parameter.mutable_grad().reset();
  }
  if (!way_.in_thread) return Reduce(std::move(gradients));
  WorkerThreads::Task task(
      [this, after = stream_->Here(), gradients = std::move(gradients)]() mutable {
        stream_->Run(after, gradients.tensors, [&] { Reduce(std::move(gradients)); });
      });
  bucket.sent = task.get_future();
  thread_.Add(std::move(task));
}

void OverlappedReduction::Reduce(Gradients gradients) {
  Stopwatch watch(busy_s_);
  MemoryScope memory(MemoryOwner::kGradients);
  at::NoGradGuard no_grad;
  if (share_ != 1.0) at::_foreach_mul_(gradients.tensors, share_);
  way_.reduce(std::move(gradients), active_);
}

void OverlappedReduction::Finish() {
  Stopwatch watch(waited_s_);
  began_ = false;
  while (unsent_ > 0) Send(buckets_[--unsent_]);
  for (Bucket& bucket : buckets_) {
    if (bucket.sent.valid()) bucket.sent.get();
  }
  if (stream_) stream_->Join();
}

}  // namespace trainwreck
