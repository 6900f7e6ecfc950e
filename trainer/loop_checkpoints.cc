// Of the training loop (loop.h): what a checkpoint has, and how a run goes on from one.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/protocol/digest.h"
#include "trainer/data/tokenizer.h"
#include "trainer/loop.h"
#include "trainer/models/model.h"
#include "trainer/ranks/communicator.h"
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

// An entry that this model, this optimizer (another ZeRO stage divides its state otherwise) or,
// where parts must agree, this step cannot have, and why.
std::optional<std::pair<std::string, std::string>> MisfitIn(const StateDict& state,
                                                            const StateDict& fresh,
                                                            bool parts_must_agree) {
  for (const auto& [name, tensor] : fresh) {
    const auto entry = state.find(name);
    const std::string owner = name.substr(0, name.find('.'));
    if ((owner != "model" && owner != "optimizer") || entry == state.end()) continue;
    if (entry->second.sizes() != tensor.sizes()) {
      return {
          {name, ShapeText(entry->second) + ", and the " + owner + " has " + ShapeText(tensor)}};
    }
  }
  const auto count = [&](const char* name) {
    const auto entry = state.find(name);
    return entry == state.end() ? std::nullopt : std::optional(entry->second.item<std::int64_t>());
  };
  const auto steps = count("loop.step"), skipped = count("loop.skipped_updates");
  if (!parts_must_agree || !steps || !skipped) return std::nullopt;
  for (const char* name : {"optimizer.step", "schedule.step"}) {
    const auto updates = count(name);
    if (updates && *updates != *steps - *skipped) {
      return {{name, "after " + std::to_string(*updates) + " updates, and the loop after " +
                         std::to_string(*steps - *skipped)}};
    }
  }
  return std::nullopt;
}

constexpr char kMerges[] = "tokenizer.merges", kReserved[] = "tokenizer.reserved";

// Tokens that are bytes need no entry.
void SaveTokenizer(const Tokenizer* tokenizer, StateDict& state) {
  if (tokenizer == nullptr || tokenizer->is_plain()) return;
  const auto count = static_cast<std::int64_t>(tokenizer->merges().size());
  at::Tensor merges = at::empty({count, 2}, at::kLong);
  auto* next = merges.mutable_data_ptr<std::int64_t>();
  for (const auto& [left, right] : tokenizer->merges()) {
    *next++ = left;
    *next++ = right;
  }
  state[kMerges] = std::move(merges);
  state[kReserved] = at::scalar_tensor(tokenizer->reserved(), at::kLong);
}

// The tokenizer that the checkpoint was trained with; null: it has none.
std::shared_ptr<const Tokenizer> TokenizerIn(const StateDict& state) {
  const auto merges = state.find(kMerges), reserved = state.find(kReserved);
  if (merges == state.end() || reserved == state.end()) return nullptr;
  const at::Tensor pairs = merges->second.contiguous();
  const auto* next = pairs.const_data_ptr<std::int64_t>();
  std::vector<Merge> learned;
  for (std::int64_t i = 0; i < pairs.size(0); ++i)
    learned.emplace_back(next[2 * i], next[2 * i + 1]);
  return std::make_shared<Tokenizer>(std::move(learned), reserved->second.item<std::int64_t>());
}

// Merges that join the same text.
std::int64_t SharedMerges(const Tokenizer& a, const Tokenizer& b) {
  std::set<std::pair<std::string_view, std::string_view>> of_a;
  for (const auto& [left, right] : a.merges()) of_a.emplace(a.TextOf(left), a.TextOf(right));
  return std::count_if(b.merges().begin(), b.merges().end(), [&](const Merge& merge) {
    return of_a.contains({b.TextOf(merge.first), b.TextOf(merge.second)});
  });
}

const char* ToString(OtherTokenizer action) {
  switch (action) {
    case OtherTokenizer::kIgnore:
      return "ignore";
    case OtherTokenizer::kStop:
      return "stop";
    case OtherTokenizer::kRestore:
      return "restore";
  }
  return "ignore";
}

}  // namespace

void TrainingLoop::RestoreTokenizer(const StateDict& state) {
  const auto saved = TokenizerIn(state), here = parts_.train_data->tokenizer();
  if (!saved || !here || saved->Digest() == here->Digest()) return;
  const OtherTokenizer action = recipe_.checkpoint_tokenizer;
  events_.Report(events::kOtherTokenizer, {{"saved", saved->Digest()},
                                           {"here", here->Digest()},
                                           {"merges_shared", SharedMerges(*saved, *here)},
                                           {"action", ToString(action)}});
  if (action == OtherTokenizer::kStop) {
    throw GuardStop("the checkpoint's tokenizer (" + saved->Digest() +
                    ") is not that of the data (" + here->Digest() + ")");
  }
  if (action == OtherTokenizer::kIgnore) return;
  for (Dataset* data :
       {parts_.train_data.get(), parts_.eval_data.get(), parts_.earlier_data.get()}) {
    if (data != nullptr) data->ReadWith(saved);
  }
}

StateDict TrainingLoop::CapturePosition() const {
  StateDict state;
  loader_.Save(state);
  // -1: the epoch began in a process that did not say.
  state["loop.epoch_samples"] = at::scalar_tensor(drawn_ ? drawn_->samples : -1, at::kDouble);
  state["loop.epoch_id_sum"] = at::scalar_tensor(drawn_ ? drawn_->id_sum : 0, at::kDouble);
  return state;
}

StateDict TrainingLoop::Capture() const {
  StateDict state = CapturePosition();
  for (const auto& [name, parameter] : parameters_) state["model." + name] = parameter.detach();
  for (const auto& [name, buffer] : buffers_) state["model." + name] = buffer;
  parts_.optimizer->Save(state);
  parts_.scaler->Save(state);
  parts_.schedule->Save(state);
  SaveTokenizer(parts_.train_data->tokenizer().get(), state);
  parts_.device->SaveRng(state);
  if (early_stop_) early_stop_->Save(state);
  state["loop.step"] = at::scalar_tensor(clock_.step, at::kLong);
  state["loop.skipped_updates"] = at::scalar_tensor(skipped_updates_, at::kLong);
  return state;
}

void TrainingLoop::SaveCheckpoint() {
  FinishSave();  // one at a time: a slow disk slows training down, and does not fill the memory
  clock_.Enter(Stage::kCheckpoint);
  const DividedParameters::Whole whole(parts_.divided_parameters.get());
  const bool beside = recipe_.checkpoint_asynchronous;
  StateDict state = Capture();
  for (auto& [name, tensor] : state) {
    tensor = beside ? tensor.to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false,
                                /*copy=*/true)
                    : tensor.cpu();
  }
  saving_.emplace(Saving{.steps_done = clock_.step,
                         .entries = state.size(),
                         .digest = DigestSignal(DigestTensors(parameters_))});
  if (recipe_.checkpoint_digests) {
    for (const auto& [name, tensor] : state) {
      saving_->entry_digests[name] = DigestSignal(DigestTensors({{name, tensor}}));
    }
  }
  saving_->written = std::async(beside ? std::launch::async : std::launch::deferred,
                                [this, steps_done = clock_.step, state = std::move(state)] {
                                  parts_.checkpoints->Save(steps_done, state);
                                });
  if (!beside) FinishSave();
}

void TrainingLoop::FinishSave() {
  if (!saving_) return;
  Saving saved = std::move(*saving_);
  saving_.reset();
  try {
    saved.written.get();
  } catch (const std::runtime_error& error) {
    if (recipe_.checkpoint_on_failure == OnFailedSave::kStop) throw;
    events_.Report(events::kCheckpointFailed,
                   {{"steps_done", saved.steps_done}, {"what", error.what()}});
    return;
  }
  Json fields = {
      {"steps_done", saved.steps_done}, {"entries", saved.entries}, {"digest", saved.digest}};
  if (!saved.entry_digests.is_null()) fields["entry_digests"] = std::move(saved.entry_digests);
  events_.Report(events::kCheckpointSaved, std::move(fields));
}

bool TrainingLoop::Restore(Return how) {
  FinishSave();
  clock_.Enter(Stage::kRestore);
  const bool rolls_back = how == Return::kRollBack;
  // A run that was stopped right after a rollback still has the checkpoints that it passed over.
  const bool must_agree = rolls_back || (recipe_.parallel_check_every > 0 &&
                                         recipe_.parallel_on_desync != OnDesync::kNone);
  const DividedParameters::Whole whole(parts_.divided_parameters.get(),
                                       DividedParameters::Use::kWritten);
  const StateDict fresh = Capture();
  std::vector<int> saved = parts_.checkpoints->List();
  for (auto steps_done = saved.rbegin(); steps_done != saved.rend(); ++steps_done) {
    const StateDict state = parts_.checkpoints->Load(*steps_done);
    Json missing = Json::array();
    for (const auto& [name, tensor] : fresh) {
      if (!state.contains(name)) missing.push_back(name);
    }
    const bool is_complete = missing.empty() || !recipe_.checkpoint_require_complete;
    if (!is_complete) {
      events_.Report(events::kCheckpointIncomplete,
                     {{"steps_done", *steps_done}, {"missing", missing}});
    }
    const auto misfit = MisfitIn(state, fresh, recipe_.checkpoint_require_complete);
    if (misfit) {
      events_.Report(
          events::kCheckpointMisfit,
          {{"steps_done", *steps_done}, {"entry", misfit->first}, {"why", misfit->second}});
    }
    // Or ranks would go on from different steps.
    if (!AllRanksSay(is_complete && !misfit)) continue;
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
    if (how == Return::kResume) RestoreTokenizer(state);
    parts_.optimizer->Load(state);
    parts_.scaler->Load(state);
    parts_.schedule->Load(state);
    loader_.Load(state);
    if (early_stop_) early_stop_->Load(state);
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
