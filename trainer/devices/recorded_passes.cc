#include "trainer/devices/recorded_passes.h"

#include <ATen/core/grad_mode.h>

#include <optional>
#include <utility>

namespace trainwreck {
namespace {

std::vector<std::int64_t> ShapeOf(const Batch& batch) {
  std::vector<std::int64_t> shape;
  for (const auto field : kBatchTensors) {
    const at::Tensor& tensor = batch.*field;
    shape.push_back(tensor.defined() ? tensor.dim() : -1);
    if (tensor.defined()) shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
  }
  return shape;
}

// Keeps the outputs that another hook reads.
class KeepOutputs : public ForwardHook {
 public:
  using Outputs = std::vector<std::pair<std::string, at::Tensor>>;
  KeepOutputs(const ForwardHook& reader, Outputs& outputs) : reader_(reader), outputs_(outputs) {}
  void OnOutput(const std::string& module, at::Tensor& output) override {
    if (reader_.Reads(module)) outputs_.emplace_back(module, output.detach());
  }

 private:
  const ForwardHook& reader_;
  Outputs& outputs_;
};

}  // namespace

RecordedPasses::RecordedPasses(Device& device, NamedTensors parameters, EventSink& events,
                               Passes passes)
    : device_(device),
      parameters_(std::move(parameters)),
      events_(events),
      passes_(std::move(passes)) {}

at::Tensor RecordedPasses::Make(const Batch& batch, const at::Tensor& seed, ForwardHook* hook) {
  const Batch moved = device_.Move(batch);
  const at::Tensor there = seed.to(device_.torch_device(), /*non_blocking=*/true);
  const std::vector<std::int64_t> shape = ShapeOf(moved);
  if (!can_record_ || (records_.size() == kMostShapes && !records_.contains(shape))) {
    return passes_(moved, there, hook);
  }
  Record& record = records_[shape];
  if (record.passes_before < kPassesBefore) {
    ++record.passes_before;
    return passes_(moved, there, hook);
  }
  if (record.work == nullptr) RecordOf(moved, there, hook, record);
  const bool shows_enough = hook == nullptr || record.shows_outputs;
  return can_record_ && shows_enough ? Replay(moved, there, hook, record)
                                     : passes_(moved, there, hook);
}

void RecordedPasses::RecordOf(const Batch& batch, const at::Tensor& seed, ForwardHook* hook,
                              Record& record) {
  record.batch.ids = batch.ids;
  for (const auto field : kBatchTensors) {
    if ((batch.*field).defined()) record.batch.*field = (batch.*field).clone();
  }
  record.seed = seed.clone();
  std::vector<at::Tensor> gradients_before;
  for (auto& [name, parameter] : parameters_) gradients_before.push_back(parameter.grad());
  record.shows_outputs = hook != nullptr;
  record.work = device_.Record([this, hook, &record] {
    // Gradients of their own, which do not depend on those of the passes before.
    for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
    record.outputs.clear();
    std::optional<KeepOutputs> keep;
    if (hook != nullptr) keep.emplace(*hook, record.outputs);
    record.loss = passes_(record.batch, record.seed, keep ? &*keep : nullptr);
    record.gradients.clear();
    for (auto& [name, parameter] : parameters_) record.gradients.push_back(parameter.grad());
  });
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].second.mutable_grad() = gradients_before[i];
  }
  can_record_ = record.work != nullptr;
  if (can_record_) {
    events_.Report(events::kPassesRecorded,
                   {{"inputs", batch.inputs.sizes().vec()}, {"records", records_.size()}});
  }
}

at::Tensor RecordedPasses::Replay(const Batch& batch, const at::Tensor& seed, ForwardHook* hook,
                                  Record& record) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums(parameters_.size());  // of the micro-batches before
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].second.grad();
    const bool overwritten = !record.gradients.empty() && gradient.is_same(record.gradients[i]);
    sums[i] = gradient.defined() && overwritten ? gradient.clone() : gradient;
  }
  for (const auto field : kBatchTensors) {
    if ((batch.*field).defined()) (record.batch.*field).copy_(batch.*field);
  }
  record.seed.copy_(seed);
  record.work->Replay();
  for (auto& [module, output] : record.outputs) {
    if (hook != nullptr) hook->OnOutput(module, output);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    at::Tensor& gradient = parameters_[i].second.mutable_grad();
    const at::Tensor& made = record.gradients[i];
    gradient = !made.defined() ? sums[i] : sums[i].defined() ? sums[i].add_(made) : made;
  }
  return record.loss.clone();  // the next replay overwrites it
}

}  // namespace trainwreck
