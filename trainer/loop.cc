#include "trainer/loop.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "trainer/data/tokenizer.h"
#include "trainer/models/free_running.h"
#include "trainer/models/model.h"
#include "trainer/models/precision.h"
#include "trainer/optimizers/clipping.h"
#include "trainer/optimizers/master_weights.h"
#include "trainer/ranks/bucket.h"
#include "trainer/stopwatch.h"
#include "trainer/telemetry/batch_report.h"

namespace trainwreck {
namespace {

double SumOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

constexpr char kNoPass[] =
    "parallel.zero_stage 3: this rank has no target to train on, and the others wait for its pass";

// With everything frozen there is nothing to go back to; the step is then without effect.
void GoBack(const at::Tensor& loss, const at::Tensor& seed = {}) {
  if (loss.requires_grad()) loss.backward(seed);
}

bool Due(std::int64_t every, int steps_done) { return every > 0 && steps_done % every == 0; }

}  // namespace

TrainingLoop::TrainingLoop(const TrainingRecipe& recipe, Parts& parts, Clock& clock,
                           Telemetry& telemetry, EventSink& events, std::string trace_dir)
    : recipe_(recipe),
      parts_(parts),
      clock_(clock),
      telemetry_(telemetry),
      events_(events),
      loader_(*parts.sampler, *parts.train_data,
              {.guard = recipe.loader_guard,
               .max_len = recipe.loader_max_len,
               .trim_padding = recipe.loader_trim_padding,
               .workers = recipe.loader_workers,
               .prefetch = recipe.loader_prefetch,
               .micro_batches = recipe.accumulation},
              clock, events),
      parameters_(ParametersOf(*parts.model)),
      buffers_(BuffersOf(*parts.model)),
      diagnosis_(*parts.model, parameters_, *parts.device, events),
      coverage_due_(recipe.audit_coverage != OnGaps::kNone),
      evidence_({.path = std::move(trace_dir) + "/evidence-rank" +
                         std::to_string(parts.communicator->rank()) + "." + clock.phase + "." +
                         std::to_string(clock.attempt),
                 .rank = parts.communicator->rank(),
                 .world_size = parts.communicator->world_size(),
                 .max_mb = recipe.diagnose_evidence_mb},
                events) {
  PrepareDividedParameters();
  telemetry_.Watch(parameters_, parts_.train_data->entropy_floor());
  if (telemetry_.wants("eval_seen_share")) seen_spans_.emplace();
  if (telemetry_.wants("mfu")) MeasurePeak();
  if (recipe.memory_limit_bytes > 0 || telemetry_.wants(events::kMemoryBlocks.name())) {
    forward_parts_.emplace();
  }
  const bool by_moment = telemetry_.wants(events::kMemoryMoments.name());
  if (by_moment) parts_.device->FollowMemory();
  if (by_moment || telemetry_.wants(events::kMemoryByStage.name())) FollowStages();
  if (recipe.early_stop_patience > 0) {
    NamedTensors weights = parameters_;
    weights.insert(weights.end(), buffers_.begin(), buffers_.end());
    early_stop_.emplace(recipe.early_stop_patience, std::move(weights));
  }
  PrepareReduction();
  if (recipe.cuda_graphs) {
    recorded_.emplace(*parts.device, parameters_, events,
                      [this](const Batch& batch, const at::Tensor& seed, ForwardHook* hook) {
                        return Passes(batch, hook,
                                      [&](const at::Tensor& loss) { GoBack(loss, seed); });
                      });
  }
  if (recipe.audit_repeat_every > 0) {
    repetition_.emplace(*parts.model, *parts.device, parameters_);
  }
  if (recipe.optimizer.in_backward) {
    gradient_hooks_.emplace(parameters_, [this](std::size_t i) { UpdateParameter(i); });
  }
}

EndReason TrainingLoop::Run(const LoopRange& range) {
  for (auto& hook : parts_.hooks) hook->OnStart();
  if (recipe_.parallel_init_sync) BroadcastFromRankZero();
  if (range.resume) Restore(Return::kResume);
  if (parts_.earlier_data) Consolidate();
  if (clock_.step == 0) telemetry_.Begin();
  const int steps = static_cast<int>(recipe_.steps);
  const int end = std::min(range.until.value_or(steps), steps);
  loader_.TrainUntil(end);
  bool stops = false;
  while (clock_.step < end && !stops) {
    TrainStep();
    const int steps_done = clock_.step + 1;
    if (Due(recipe_.parallel_average_every, steps_done)) AverageParameters();
    if (recipe_.parallel_keep_digests && recipe_.parallel_check_every > 0) {
      kept_digests_.Keep(clock_.step, parameters_);
    }
    if (Due(recipe_.parallel_check_every, steps_done) && !CheckReplicas()) continue;
    telemetry_.AfterUpdate();
    if (Due(recipe_.log_every, steps_done)) LogStep();
    if (epoch_over_) EndEpoch();
    if (Due(recipe_.eval_every, steps_done) || steps_done == steps) Evaluate();
    stops = early_stop_ && early_stop_->is_over() && end == steps && steps_done < steps;
    if (early_stop_ && (stops || steps_done == steps)) RestoreBest(stops);
    now_.memory = StepMemory();
    ReportBlocks();
    ReportStages();
    now_.health = parts_.device->Health();
    telemetry_.WriteStep(clock_.step, now_, /*last=*/stops || steps_done == end);
    clock_.step = steps_done;
    if (Due(recipe_.checkpoint_every, steps_done) || (steps_done == end && end < steps)) {
      SaveCheckpoint();
    } else if (saving_ &&
               saving_->written.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      FinishSave();
    }
  }
  loader_.Stop();
  FinishSave();
  parts_.communicator->Barrier();  // a rank that leaves earlier would break its peers' last calls
  if (stops) return EndReason::kStoppedEarly;
  return end < steps ? EndReason::kPhaseDone : EndReason::kCompleted;
}

void TrainingLoop::TrainStep() {
  now_ = StepScalars();
  Stopwatch watch(now_.step_s);
  ProcessorStopwatch processor_watch(now_.cpu_s);
  BeginStepMemory();
  const bool times_device = telemetry_.wants("device_step_s");
  if (times_device) parts_.device->BeginTiming();
  for (auto& hook : parts_.hooks) hook->OnStepBegin(clock_.step);

  if (recipe_.diagnose_nonfinite) KeepBeginning();
  const std::vector<Batch> batches = DrawBatches();
  CountFlops(batches);
  parts_.optimizer->ZeroGrad();
  if (telemetry_.wants("leftover_gradients")) {
    const UncountedMemory measuring;
    now_.leftover_gradients = static_cast<double>(CountFilled(ReadGradients()));
  }
  gradient_hooks_ ? UpdateInBackward(batches) : UpdateAfterBackward(batches);
  for (auto& hook : parts_.hooks) hook->OnStepEnd(clock_.step);
  if (times_device) {
    parts_.device->EndTiming();
    now_.device_step_s = parts_.device->TimedSeconds();
  }
}

void TrainingLoop::UpdateAfterBackward(const std::vector<Batch>& batches) {
  if (recipe_.diagnose_nonfinite) diagnosis_.BeforeForward();
  const std::vector<double> counts = CountsOf(batches);
  if (ReducesWithin()) BeginReduction(batches, counts);
  const bool repeats = Due(recipe_.audit_repeat_every, clock_.step + 1);
  if (repeats) repetition_->Begin();
  now_.loss = ForwardBackward(batches, counts, telemetry_.activation_hook(),
                              [&](std::size_t i) { EndMicroBatch(batches, i); });
  if (ReducesWithin()) FinishReduction();
  if (repeats) RepeatPasses(batches, counts);
  for (auto& hook : parts_.hooks) hook->OnBackwardDone(clock_.step);
  ReduceOverRanks(SumOf(counts), /*has_data=*/!now_.sample_ids.empty());
  if (!std::isfinite(now_.loss) && !nonfinite_seen_) ReportNonfinite(batches);

  now_.loss_scale = parts_.scaler->scale();
  now_.overflow = UnscaleGradients();
  if (consolidation_) consolidation_->AddGradients();
  gradients_ = ReadGradients();
  ReportGradients();
  now_.lr = LearningRate();
  if (recipe_.diagnose_nonfinite) DiagnoseNonfinite(batches, counts);
  telemetry_.BeforeUpdate();
  if (now_.overflow) {
    ++skipped_updates_;
  } else {
    coverage_due_ ? AuditedUpdate() : Update();
  }
  now_.skipped_updates = static_cast<double>(skipped_updates_);
  parts_.scaler->Update(now_.overflow);
}

void TrainingLoop::UpdateInBackward(const std::vector<Batch>& batches) {
  now_.lr = LearningRate();
  telemetry_.BeforeUpdate();
  gradients_.assign(parameters_.size(), {});
  now_.loss = ForwardBackward(batches, /*counts=*/{1.0}, telemetry_.activation_hook(),
                              [&](std::size_t i) { EndMicroBatch(batches, i); });
  for (auto& hook : parts_.hooks) hook->OnBackwardDone(clock_.step);
  if (!std::isfinite(now_.loss) && !nonfinite_seen_) ReportNonfinite(batches);
  ReportGradients();
  if (telemetry_.wants("applied_grad_norm")) now_.applied_grad_norm = now_.grad_norm;
  ReportMasters();
  parts_.schedule->Advance();
}

void TrainingLoop::UpdateParameter(std::size_t i) {
  const NamedTensors one = {parameters_[i]};
  gradients_[i] = GradientStats(one)[0];
  MemoryScope memory(MemoryOwner::kOptimizer);
  parts_.optimizer->Step(now_.lr);  // of the only one that has a gradient
  parameters_[i].second.mutable_grad().reset();
}

void TrainingLoop::ReportGradients() {
  telemetry_.Gradients(gradients_);
  now_.grad_norm = GlobalNorm(gradients_);
  now_.nonfinite_grads = static_cast<double>(CountNonfinite(gradients_));
}

void TrainingLoop::ReportMasters() {
  if (telemetry_.wants("off_master")) {
    const UncountedMemory measuring;
    now_.off_master = ElementsOffMaster(parameters_, *parts_.optimizer);
  }
}

bool TrainingLoop::UnscaleGradients() {
  std::vector<at::Tensor> gradients;
  for (const auto& [name, owner] : GradientOwners()) {
    if (owner.grad().defined()) gradients.push_back(owner.grad());
  }
  const bool overflowed = parts_.scaler->Unscale(gradients);
  return parts_.scaler->skips_updates() && !AllRanksSay(!overflowed);
}

void TrainingLoop::Update() {
  clock_.Enter(Stage::kUpdate);
  MemoryScope memory(MemoryOwner::kOptimizer);
  if (recipe_.optimizer.clip_norm > 0) {
    now_.clipped = ClipGradients(GradientOwners(), now_.grad_norm, recipe_.optimizer.clip_norm);
  }
  {
    Stopwatch watch(now_.update_s);
    parts_.optimizer->Step(now_.lr);
  }
  if (telemetry_.wants("applied_grad_norm")) {
    const UncountedMemory measuring;
    now_.applied_grad_norm = GlobalNorm(ReadGradients());
  }
  ReportMasters();
  parts_.schedule->Advance();
}

std::optional<Batch> TrainingLoop::DrawBatch() {
  clock_.Enter(Stage::kData);
  Stopwatch watch(now_.data_s);
  return loader_.Next();
}

std::vector<Batch> TrainingLoop::DrawBatches() {
  std::vector<Batch> batches;
  int epochs_ended = 0;
  while (static_cast<std::int64_t>(batches.size()) < recipe_.accumulation) {
    now_.epoch = static_cast<double>(loader_.epoch());
    if (std::optional<Batch> batch = DrawBatch()) {
      now_.sample_ids.insert(now_.sample_ids.end(), batch->ids.begin(), batch->ids.end());
      CountDrawn(batch->ids);
      if (batch->size() > 0) CountBatch(*batch);
      batches.push_back(std::move(*batch));
      continue;
    }
    now_.ended_epoch = std::exchange(drawn_, EpochDrawn());
    if (batches.empty()) {
      if (++epochs_ended > 1) throw std::runtime_error("a whole epoch without a usable sample");
      EndEpoch();
    } else {
      epoch_over_ = true;  // the step makes do with what it has
      break;
    }
  }
  now_.skipped = static_cast<double>(loader_.skipped());
  for (std::size_t i = 0; i < batches.size() && telemetry_.wants(events::kBatch.name()); ++i) {
    const auto tokenizer = parts_.train_data->tokenizer();
    events_.Report(events::kBatch, DescribeBatch(batches[i], i, tokenizer.get()));
  }
  return batches;
}

void TrainingLoop::CountBatch(const Batch& batch) {
  now_.tokens += static_cast<double>(batch.targets.numel());
  now_.loss_tokens += batch.weights.count_nonzero().item<double>();
  const auto add = [&](const char* signal, std::optional<double>& sum, auto count) {
    if (!telemetry_.wants(signal)) return;
    if (const std::optional<double> more = count(batch)) sum = sum.value_or(0) + *more;
  };
  const UncountedMemory measuring;
  add("misplaced_targets", now_.misplaced_targets, MisplacedTargets);
  add("equal_inputs", now_.equal_inputs, EqualInputs);
  if (seen_spans_) seen_spans_->Add(batch);
}

void TrainingLoop::CountDrawn(const std::vector<std::int64_t>& ids) {
  if (!drawn_) return;
  drawn_->samples += static_cast<double>(ids.size());
  drawn_->id_sum += static_cast<double>(std::accumulate(ids.begin(), ids.end(), std::int64_t{0}));
}

Autocast TrainingLoop::RunPrecision() const {
  return Autocast::Of(recipe_.precision, parameters_.at(0).second.device().type());
}

void TrainingLoop::SampleInputs(Batch& batch) {
  const SamplingRecipe& recipe = recipe_.scheduled_sampling;
  double share = recipe.share;
  if (clock_.step < recipe.ramp_steps) {
    share *= static_cast<double>(clock_.step) / static_cast<double>(recipe.ramp_steps);
  }
  if (share == 0) return;
  const at::Tensor drawn = at::rand_like(batch.weights).lt(share);
  batch.inputs = WithOwnInputs(*parts_.model, batch, BehindTargets(batch).logical_and(drawn));
}

// A micro-batch counts by what its loss is a mean over, so that accumulation equals one large batch
// even when micro-batches differ in it.
std::vector<double> TrainingLoop::CountsOf(const std::vector<Batch>& batches) const {
  if (batches.size() == 1 && parts_.communicator->world_size() == 1) return {1.0};
  std::vector<double> counts;
  for (const Batch& batch : batches) {
    counts.push_back(parts_.scaler->Weigh(CountOf(batch, recipe_.model.loss.per_sequence)));
  }
  return counts;
}

double TrainingLoop::ForwardBackward(const std::vector<Batch>& batches,
                                     const std::vector<double>& counts, ForwardHook* hook,
                                     const AfterMicroBatch& after, bool may_replay) {
  const DividedParameters::Pass gathered(parts_.divided_parameters.get());
  std::vector<double> shares = counts;
  const double total = SumOf(shares);
  for (double& share : shares) {
    // A step without any target is for the loss to judge, as one large batch would be.
    share =
        total == 0 || shares.size() == 1 ? 1.0 / static_cast<double>(shares.size()) : share / total;
  }
  std::vector<std::pair<double, at::Tensor>> losses;  // share, value: read when all is queued
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const double share = shares[i];
    if (batches[i].size() > 0 && share != 0) {
      at::Tensor loss =
          recorded_ && may_replay
              ? recorded_->Make(batches[i], parts_.scaler->Scale(at::ones({}), share), hook)
              : Passes(batches[i], hook,
                       [&](const at::Tensor& made) { GoBack(parts_.scaler->Scale(made, share)); });
      losses.emplace_back(share, std::move(loss));
    } else if (parts_.divided_parameters) {
      throw std::runtime_error(kNoPass);
    }
    if (after) after(i);
  }
  double mean_loss = 0;
  for (const auto& [share, loss] : losses) mean_loss += share * loss.item<double>();
  return mean_loss;
}

at::Tensor TrainingLoop::Passes(const Batch& batch, ForwardHook* hook, const Backward& backward) {
  CountGathering(nullptr);
  clock_.Enter(Stage::kForward);
  at::Tensor loss;
  {
    Stopwatch watch(now_.forward_s);
    MemoryScope memory(MemoryOwner::kActivations);
    AutocastGuard autocast(RunPrecision());
    Batch moved = parts_.device->Move(batch);
    SampleInputs(moved);
    HookScope scope(*parts_.model, hook);
    HookScope parts_scope(*parts_.model, BeginForwardParts());
    loss = parts_.model->Loss(moved);
  }
  CountGathering(&now_.forward_s);
  clock_.Enter(Stage::kBackward);
  Stopwatch watch(now_.backward_s);
  MemoryScope memory(MemoryOwner::kGradients);
  backward(loss);
  CountGathering(&now_.backward_s);
  return loss.detach();
}

void TrainingLoop::CopyNextAhead(const std::vector<Batch>& batches, std::size_t micro_batch) {
  const Batch* next = micro_batch + 1 < batches.size() ? &batches[micro_batch + 1] : loader_.Peek();
  if (next != nullptr && next->size() > 0) parts_.device->CopyAhead(*next);
}

// A rank counts by what its loss is a mean over, as a micro-batch does; all by the same where they
// have no target at all.
void TrainingLoop::ReduceOverRanks(double count, bool has_data) {
  clock_.Enter(Stage::kReduce);
  if (parts_.communicator->world_size() == 1) return;
  MemoryScope memory(MemoryOwner::kGradients);
  Stopwatch watch(now_.comm_s);
  at::NoGradGuard no_grad;
  const double loss = has_data ? now_.loss : 0.0;
  at::Tensor totals = at::tensor({loss, has_data ? 1.0 : 0.0, loss * count, count}, at::kDouble);
  parts_.communicator->AllReduce(totals, Reduction::kSum);
  const double active = totals[1].item<double>(), total = totals[3].item<double>();
  const double share = total > 0 ? count * active / total : 1.0;  // 1 where ranks count alike
  now_.loss = total > 0 ? totals[2].item<double>() / total : totals[0].item<double>() / active;
  if (ReducesWithin()) return;  // gradients are means already
  std::vector<at::Tensor> gradients;
  for (auto& [name, parameter] : parameters_) {
    if (parameter.requires_grad()) gradients.push_back(GradientOf(parameter));
  }
  if (share != 1.0) at::_foreach_mul_(gradients, share);
  AllReduceMean(*parts_.communicator, gradients,
                static_cast<std::int64_t>(recipe_.parallel_bucket_mb * 1e6), active, ReduceDtype());
}

double TrainingLoop::LearningRate() const {
  const double lr = parts_.schedule->LearningRate();
  if (!resumed_at_) return lr;
  const int since = clock_.step - *resumed_at_ + 1;
  if (since >= recipe_.resume_rewarm_steps) return lr;
  return lr * since / static_cast<double>(recipe_.resume_rewarm_steps);
}

void TrainingLoop::LogStep() {
  clock_.Enter(Stage::kLog);
  Communicator& ranks = *parts_.communicator;
  if (recipe_.log_rank_zero_only && ranks.rank() != 0) return;
  MemoryScope memory(MemoryOwner::kLogging);
  Stopwatch watch(now_.log_s);
  for (auto& hook : parts_.hooks) hook->OnLog(clock_.step);
  at::Tensor tokens = at::scalar_tensor(now_.tokens, at::kDouble);
  if (recipe_.log_over_ranks) ranks.AllReduce(tokens, Reduction::kSum);
  events_.Report(events::kLogged,
                 {{"tokens", tokens.item<double>()}, {"over_ranks", recipe_.log_over_ranks}});
}

void TrainingLoop::EndEpoch() {
  epoch_over_ = false;
  parts_.communicator->Barrier();
  if (recipe_.eval_at_epoch_end) Evaluate();
}

void TrainingLoop::Consolidate() {
  consolidation_.emplace(*parts_.model, *parts_.device, parameters_, *parts_.earlier_data,
                         recipe_.finetune.consolidation);
  events_.Report(events::kConsolidated, {{"samples", consolidation_->samples()},
                                         {"strength", recipe_.finetune.consolidation},
                                         {"fisher_mean", consolidation_->fisher_mean()}});
}

}  // namespace trainwreck
