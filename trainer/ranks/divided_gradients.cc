#include "trainer/ranks/divided_gradients.h"

#include <ATen/ops/cat.h>

#include <utility>

namespace trainwreck {
namespace {

std::vector<std::size_t> TrainedOf(const NamedTensors& parameters) {
  std::vector<std::size_t> trained;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].second.requires_grad()) trained.push_back(i);
  }
  return trained;
}

NamedTensors Some(const NamedTensors& parameters, const std::vector<std::size_t>& numbers) {
  NamedTensors some;
  for (const std::size_t i : numbers) some.push_back(parameters[i]);
  return some;
}

}  // namespace

DividedGradients::DividedGradients(Communicator& communicator, const Division& division,
                                   std::int64_t bucket_bytes, bool in_thread,
                                   std::optional<at::ScalarType> sent_dtype)
    : communicator_(communicator),
      division_(division),
      sent_dtype_(sent_dtype),
      trained_(TrainedOf(division.parameters())),
      reduction_(Some(division.parameters(), trained_), bucket_bytes,
                 {.reduce = [this](OverlappedReduction::Gradients gradients,
                                   double active) { Reduce(std::move(gradients), active); },
                  .takes_gradients = true,
                  .in_thread = in_thread}) {}

void DividedGradients::Begin(int micro_batches, double share, double active) {
  micro_batches_ = micro_batches;
  share_ = share;
  active_ = active;
  busy_s_ = waited_s_ = 0;
  reduction_.Begin(/*backward_passes=*/1, share, active);
}

void DividedGradients::EndMicroBatch() {
  reduction_.Finish();
  busy_s_ += reduction_.busy_s();
  waited_s_ += reduction_.waited_s();
  if (--micro_batches_ > 0) reduction_.Begin(/*backward_passes=*/1, share_, active_);
}

void DividedGradients::Finish() {
  while (micro_batches_ > 0) EndMicroBatch();
}

void DividedGradients::Reduce(OverlappedReduction::Gradients gradients, double active) {
  std::vector<at::Tensor> flat;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < gradients.tensors.size(); ++i) {
    flat.push_back(gradients.tensors[i].reshape({-1}));
    numbers.push_back(trained_[gradients.first + i]);
  }
  at::Tensor bucket = at::cat(flat);
  flat.clear();
  gradients.tensors.clear();  // freed before anything is sent
  const at::ScalarType dtype = bucket.scalar_type();
  if (sent_dtype_) bucket = bucket.to(*sent_dtype_);
  for (const OwnedPiece& piece : division_.PiecesOf(numbers)) {
    at::Tensor sum = bucket.narrow(0, piece.begin, piece.size);
    communicator_.Reduce(sum, piece.owner);
    if (piece.owner != division_.rank()) continue;
    std::int64_t begin = 0;
    for (const std::size_t part : piece.parts) {
      const std::int64_t size = division_.parts()[part].size;
      const at::Tensor mean =
          sum.narrow(0, begin, size).to(dtype, /*non_blocking=*/false, /*copy=*/true).div_(active);
      begin += size;
      at::Tensor& own = division_.own()[division_.own_of(part)].second.mutable_grad();
      own = own.defined() ? own.add_(mean) : mean;
    }
  }
}

}  // namespace trainwreck
