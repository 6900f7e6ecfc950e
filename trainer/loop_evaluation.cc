// Of the training loop (loop.h): evaluations, and the weights of the best one.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <vector>

#include "trainer/data/tokenizer.h"
#include "trainer/loop.h"
#include "trainer/models/free_running.h"
#include "trainer/models/model.h"
#include "trainer/models/precision.h"
#include "trainer/telemetry/batch_report.h"

namespace trainwreck {

void TrainingLoop::EndMicroBatch(const std::vector<Batch>& batches, std::size_t micro_batch) {
  CopyNextAhead(batches, micro_batch);
  if (divided_gradients_) divided_gradients_->EndMicroBatch();
  const std::int64_t done =
      clock_.step * recipe_.accumulation + static_cast<std::int64_t>(micro_batch) + 1;
  const std::int64_t every = recipe_.eval_every_micro_batches;
  if (every > 0 && done % every == 0) Evaluate();
}

void TrainingLoop::Evaluate() {
  clock_.Enter(Stage::kEvaluate);
  const DividedParameters::Pass gathered(parts_.divided_parameters.get());
  MemoryScope memory(MemoryOwner::kEvaluation);
  at::NoGradGuard no_grad;
  parts_.model->eval();
  for (auto& hook : parts_.hooks) hook->OnEvaluation(clock_.step);
  const bool on_training = recipe_.eval_data == EvalData::kTraining;
  const Dataset& data = on_training ? *parts_.train_data : *parts_.eval_data;
  const std::int64_t batch_size =
      recipe_.eval_batch_size > 0 ? recipe_.eval_batch_size : recipe_.data.batch_size;
  const int world_size = parts_.communicator->world_size();
  AutocastGuard autocast(RunPrecision());
  double loss = 0, accuracy = 0, count = 0, nats = 0, bytes = 0;  // sums over batches
  const auto tokenizer = data.tokenizer();
  SeenSpans::Count spans;
  for (std::int64_t b = 0; b < recipe_.eval_batches; ++b) {
    const std::int64_t begin = (b * world_size + parts_.communicator->rank()) * batch_size;
    std::vector<Sample> samples;
    for (std::int64_t i = 0; i < batch_size; ++i) {
      samples.push_back(data.Get((begin + i) % data.size()));
    }
    const Batch batch = parts_.device->Move(Collate(samples));
    const double counted = CountOf(batch, recipe_.model.loss.per_sequence);
    count += counted;
    const double mean = parts_.model->Loss(batch).item<double>();
    loss += counted * mean;
    if (tokenizer) {
      nats += mean * batch.weights.sum().item<double>();
      bytes += BytesOfTargets(samples, *tokenizer);
    }
    if (recipe_.eval_free_running) accuracy += FreeRunningAccuracy(*parts_.model, batch);
    if (seen_spans_) spans += seen_spans_->CountIn(batch);
  }
  parts_.model->train();
  at::Tensor totals = at::tensor({loss, count, accuracy}, at::kDouble);
  if (world_size > 1) parts_.communicator->AllReduce(totals, Reduction::kSum);
  Evaluation evaluation{.loss = (totals[0] / totals[1]).item<double>()};
  if (bytes > 0) evaluation.bits_per_byte = nats / std::log(2.0) / bytes;
  if (recipe_.eval_free_running) {
    evaluation.free_running_accuracy =
        totals[2].item<double>() / static_cast<double>(recipe_.eval_batches * world_size);
  }
  if (seen_spans_) evaluation.seen_share = spans.seen / spans.spans;
  telemetry_.Evaluated(evaluation);
  if (early_stop_) early_stop_->Judge(clock_.step, evaluation.loss);
  events_.Report(events::kEvaluated, {{"loss", EncodeNumber(evaluation.loss)},
                                      {"batches", recipe_.eval_batches},
                                      {"data", on_training ? "training" : "held_out"}});
}

void TrainingLoop::RestoreBest(bool stops) {
  if (!early_stop_->RestoreBest()) return;
  events_.Report(events::kBestRestored, {{"best_step", early_stop_->best_step()},
                                         {"loss", EncodeNumber(early_stop_->best_loss())},
                                         {"stopped", stops}});
  Evaluate();
}

}  // namespace trainwreck
