// Of the training loop (loop.h): keeping the ranks' parameters equal.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "trainer/loop.h"
#include "trainer/models/model.h"
#include "trainer/ranks/bucket.h"

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
  for (const auto& item : parts_.model->named_buffers()) {
    state["model." + item.key()] = item.value();
  }
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

}  // namespace trainwreck
