// Of the training loop (loop.h): reducing gradients within the backward pass, and keeping the
// parameters of ranks equal.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "trainer/loop.h"
#include "trainer/models/model.h"
#include "trainer/ranks/bucket.h"
#include "trainer/stopwatch.h"

namespace trainwreck {
namespace {

// A fault that comes back after every rollback would keep a run going round for ever.
constexpr int kMaxRollbacks = 3;

}  // namespace

bool TrainingLoop::CheckReplicas() {
  std::optional<Desync> desync = CompareReplicas(*parts_.communicator, parameters_);
  Json fields = Json::object();
  if (desync) {
    if (const auto apart = kept_digests_.FirstApart(*parts_.communicator, parameters_)) {
      fields["since_step"] = apart->step;
      desync = apart->desync;
    }
  }
  kept_digests_.Forget();
  if (!desync) return true;
  if (parts_.communicator->rank() == 0) {
    fields["ranks"] = desync->ranks;
    fields["tensors"] = desync->tensors;
    fields["reference"] = desync->reference;
    events_.Report(events::kDesync, std::move(fields));
  }
  switch (recipe_.parallel_on_desync) {
    case OnDesync::kNone:
      return true;
    case OnDesync::kStop:
      throw GuardStop("the ranks' parameters differ, first in " + desync->tensors.front());
    case OnDesync::kBroadcast:
      BroadcastFromRankZero();
      return true;
    case OnDesync::kRollback:
      RollBack();
      return false;
  }
  return true;
}

void TrainingLoop::AverageParameters() {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, parameter] : parameters_) tensors.push_back(parameter.detach());
  AllReduceMean(*parts_.communicator, tensors,
                static_cast<std::int64_t>(recipe_.parallel_bucket_mb * 1e6),
                parts_.communicator->world_size());
}

void TrainingLoop::BroadcastFromRankZero() {
  StateDict state;
  for (const auto& [name, parameter] : parameters_) state["model." + name] = parameter.detach();
  for (const auto& [name, buffer] : buffers_) state["model." + name] = buffer;
  parts_.optimizer->Save(state);
  BroadcastState(*parts_.communicator, state, /*root=*/0);
  parts_.optimizer->Load(state);  // one that saves copies needs them back
  if (parts_.communicator->rank() == 0) {
    events_.Report(events::kRebroadcast, {{"root", 0}, {"entries", state.size()}});
  }
}

void TrainingLoop::RollBack() {
  if (++rollbacks_ > kMaxRollbacks) {
    throw GuardStop("the ranks' parameters differ again after " + std::to_string(kMaxRollbacks) +
                    " rollbacks");
  }
  const int from_step = clock_.step;
  epoch_over_ = false;
  telemetry_.DropStep();
  if (!Restore(Return::kRollBack)) {
    throw GuardStop("the ranks' parameters differ, and there is no checkpoint to go back to");
  }
  events_.Report(events::kRolledBack, {{"from_step", from_step}, {"to_step", clock_.step}});
}

bool TrainingLoop::AllRanksSay(bool yes) {
  if (parts_.communicator->world_size() == 1) return yes;
  at::Tensor all = at::scalar_tensor(yes ? 1 : 0, at::kLong);
  parts_.communicator->AllReduce(all, Reduction::kMin);
  return all.item<std::int64_t>() == 1;
}

std::optional<at::ScalarType> TrainingLoop::ReduceDtype() const {
  if (recipe_.parallel_sent == SentDtype::kBf16) return at::kBFloat16;
  return std::nullopt;
}

void TrainingLoop::PrepareReduction() {
  const auto bucket_bytes = static_cast<std::int64_t>(recipe_.parallel_bucket_mb * 1e6);
  if (recipe_.parallel_zero_stage >= 2) {
    divided_gradients_.emplace(*parts_.communicator, *parts_.division, bucket_bytes,
                               recipe_.parallel_overlap, ReduceDtype());
  }
  if (!recipe_.parallel_overlap || parts_.communicator->world_size() == 1) return;
  if (divided_gradients_) return;
  NamedTensors trained;
  for (const auto& named : parameters_) {
    if (named.second.requires_grad()) trained.push_back(named);
  }
  overlap_.emplace(*parts_.communicator, trained, bucket_bytes, ReduceDtype());
}

// The weights of the ranks' gradients are agreed on before there are any.
void TrainingLoop::BeginReduction(const std::vector<Batch>& batches,
                                  const std::vector<double>& counts) {
  clock_.Enter(Stage::kReduce);
  Stopwatch watch(now_.comm_s);
  const double count = std::accumulate(counts.begin(), counts.end(), 0.0);
  at::Tensor totals = at::tensor({now_.sample_ids.empty() ? 0.0 : 1.0, count}, at::kDouble);
  parts_.communicator->AllReduce(totals, Reduction::kSum);
  const double active = totals[0].item<double>(), total = totals[1].item<double>();
  const double share = total > 0 ? count * active / total : 1.0;
  if (divided_gradients_) {
    return divided_gradients_->Begin(static_cast<int>(recipe_.accumulation), share, active);
  }
  int passes = 0;  // backward passes that ForwardBackward will make
  for (std::size_t i = 0; i < batches.size(); ++i) {
    passes += batches[i].size() > 0 && (counts[i] != 0 || count == 0 || batches.size() == 1);
  }
  overlap_->Begin(passes, share, active);
}

void TrainingLoop::FinishReduction() {
  clock_.Enter(Stage::kReduce);
  double busy_s = 0, waited_s = 0;
  const auto finish = [&](auto& reduction) {
    reduction.Finish();
    busy_s = reduction.busy_s();
    waited_s = reduction.waited_s();
  };
  overlap_ ? finish(*overlap_) : finish(*divided_gradients_);
  now_.comm_s += waited_s;
  if (recipe_.parallel_overlap) {
    now_.comm_hidden_s = std::max(0.0, busy_s - waited_s);
  } else {  // it went on while nothing else did
    now_.comm_s += busy_s - waited_s;
    now_.backward_s -= busy_s - waited_s;
  }
}

}  // namespace trainwreck
