// Of the training loop (loop.h): what a checkpoint has, and how a run goes on from one.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/digest.h"
#include "trainer/loop.h"
#include "trainer/models/model.h"
#include "trainer/ranks/replicas.h"

namespace trainwreck {
namespace {

// What the epoch in progress drew before the checkpoint; empty: nobody knows.
std::optional<EpochDrawn> DrawnIn(const StateDict& state) {
  const auto samples = state.find("loop.epoch_samples"), id_sum = state.find("loop.epoch_id_sum");
  if (samples == state.end() || id_sum == state.end()) return std::nullopt;
  const EpochDrawn drawn{samples->second.item<double>(), id_sum->second.item<double>()};
  return drawn.samples < 0 ? std::nullopt : std::optional(drawn);
}

}  // namespace

StateDict TrainingLoop::Capture() const {
  StateDict state;
  for (const auto& [name, parameter] : parameters_) state["model." + name] = parameter.detach();
  for (const auto& item : parts_.model->named_buffers()) {
    state["model." + item.key()] = item.value();
  }
  parts_.optimizer->Save(state);
  parts_.scaler->Save(state);
  parts_.schedule->Save(state);
  parts_.sampler->Save(state);
  parts_.device->SaveRng(state);
  state["loop.step"] = at::scalar_tensor(clock_.step, at::kLong);
  state["loop.skipped_updates"] = at::scalar_tensor(skipped_updates_, at::kLong);
  // -1: the epoch began in a process that did not say.
  state["loop.epoch_samples"] = at::scalar_tensor(drawn_ ? drawn_->samples : -1, at::kDouble);
  state["loop.epoch_id_sum"] = at::scalar_tensor(drawn_ ? drawn_->id_sum : 0, at::kDouble);
  return state;
}

void TrainingLoop::SaveCheckpoint() {
  clock_.stage = Stage::kCheckpoint;
  StateDict state = Capture();
  for (auto& [name, tensor] : state) tensor = tensor.cpu();
  const std::size_t entries = state.size();
  parts_.checkpoints->Save(clock_.step, state);
  events_.Report(events::kCheckpointSaved, {{"steps_done", clock_.step},
                                            {"entries", entries},
                                            {"digest", DigestSignal(DigestTensors(parameters_))}});
}

bool TrainingLoop::Restore(Return how) {
  clock_.stage = Stage::kRestore;
  const bool rolls_back = how == Return::kRollBack;
  // A run that was stopped right after a rollback still has the checkpoints that it passed over.
  const bool must_agree = rolls_back || (recipe_.parallel_check_every > 0 &&
                                         recipe_.parallel_on_desync != OnDesync::kNone);
  const StateDict fresh = Capture();
  std::vector<int> saved = parts_.checkpoints->List();
  for (auto steps_done = saved.rbegin(); steps_done != saved.rend(); ++steps_done) {
    const StateDict state = parts_.checkpoints->Load(*steps_done);
    Json missing = Json::array();
    for (const auto& [name, tensor] : fresh) {
      if (!state.contains(name)) missing.push_back(name);
    }
    if (recipe_.checkpoint_require_complete) {
      const bool complete = missing.empty();
      if (!complete) {
        events_.Report(events::kCheckpointIncomplete,
                       {{"steps_done", *steps_done}, {"missing", missing}});
      }
      if (!AllRanksSay(complete)) continue;  // or ranks would go on from different steps
    }
    at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : fresh) {
      auto entry = state.find(name);
      // `fresh` shares the model's storage.
      if (name.starts_with("model.") && entry != state.end()) {
        at::Tensor into = tensor;
        into.copy_(entry->second);
      }
    }
    if (must_agree && CompareReplicas(*parts_.communicator, parameters_)) continue;
    parts_.optimizer->Load(state);
    parts_.scaler->Load(state);
    parts_.schedule->Load(state);
    parts_.sampler->Load(state);
    drawn_ = DrawnIn(state);
    parts_.device->LoadRng(state);
    if (auto entry = state.find("loop.step"); entry != state.end()) {
      clock_.step = entry->second.item<int>();
    }
    if (auto entry = state.find("loop.skipped_updates"); entry != state.end()) {
      skipped_updates_ = entry->second.item<std::int64_t>();
    }
    if (rolls_back) return true;
    resumed_at_ = clock_.step;
    events_.Report(
        events::kResumed,
        {{"from_step", clock_.step}, {"steps_done", *steps_done}, {"missing", std::move(missing)}});
    return true;
  }
  return false;
}

}  // namespace trainwreck
