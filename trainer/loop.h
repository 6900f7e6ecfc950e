// The training loop: one optimizer step after the other, over the interfaces of parts.h. Read Run()
// first. Files of their own (loop_*.cc) have checkpoints, the ranks' replicas, and steps that are
// not finite.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "trainer/consolidation.h"
#include "trainer/data/loader.h"
#include "trainer/devices/recorded_passes.h"
#include "trainer/early_stop.h"
#include "trainer/models/precision.h"
#include "trainer/optimizers/in_backward.h"
#include "trainer/parts.h"
#include "trainer/ranks/divided_gradients.h"
#include "trainer/ranks/divided_parameters.h"
#include "trainer/ranks/overlapped_reduction.h"
#include "trainer/ranks/replicas.h"
#include "trainer/recipe/recipe.h"
#include "trainer/repetition.h"
#include "trainer/telemetry/coverage.h"
#include "trainer/telemetry/evidence.h"
#include "trainer/telemetry/forward_parts.h"
#include "trainer/telemetry/nonfinite.h"
#include "trainer/telemetry/seen_spans.h"
#include "trainer/telemetry/telemetry.h"

namespace trainwreck {

enum class EndReason { kCompleted, kPhaseDone, kStoppedEarly };
const char* ToString(EndReason reason);

// Where a phase starts and ends.
struct LoopRange {
  std::optional<int> until;  // optimizer steps after which the phase ends, with a checkpoint
  bool resume = false;       // from the newest usable checkpoint, when there is one
};

class TrainingLoop {
 public:
  // All references must outlive the loop; evidence of a failing step goes below `trace_dir`.
  TrainingLoop(const TrainingRecipe& recipe, Parts& parts, Clock& clock, Telemetry& telemetry,
               EventSink& events, std::string trace_dir);

  // Throws what the parts throw; GuardStop when a guard says to stop.
  EndReason Run(const LoopRange& range);

  // Waits for the save that goes on beside training, if any, and reports how it ended. Throws
  // std::runtime_error where it failed and checkpoint.on_failure says stop.
  void FinishSave();

  // Ids of the batch in progress, to name in the report of an exception.
  const std::vector<std::int64_t>& current_samples() const { return now_.sample_ids; }
  // Bytes of activations by block of the model; empty: nobody asked for them.
  Json ByBlock(const std::vector<std::int64_t>& by_part) const;

 private:
  void TrainStep();
  // The work of a step once its batches are drawn: forward, backward and the update, which comes
  // after the backward pass or within it.
  void UpdateAfterBackward(const std::vector<Batch>& batches);
  void UpdateInBackward(const std::vector<Batch>& batches);
  // Updates parameter i as soon as its gradient is there, and frees the gradient.
  void UpdateParameter(std::size_t i);
  std::optional<Batch> DrawBatch();  // empty: the epoch is over
  // Draws the micro-batches of one step. Continues in the next epoch, unless that would split the
  // step.
  std::vector<Batch> DrawBatches();
  void CountBatch(const Batch& batch);
  void CountDrawn(const std::vector<std::int64_t>& ids);  // for the epoch's sum
  // The weight of each micro-batch in the mean of the step; 1 for a single one.
  std::vector<double> CountsOf(const std::vector<Batch>& batches) const;
  // Computes the gradients of the mean loss over all micro-batches, weighted by `counts`, and
  // returns that loss. `hook`, if any, sees the forward passes. `after` is called after each
  // micro-batch, with its number in the step. Recorded passes run nothing on the host.
  using AfterMicroBatch = std::function<void(std::size_t)>;
  double ForwardBackward(const std::vector<Batch>& batches, const std::vector<double>& counts,
                         ForwardHook* hook, const AfterMicroBatch& after = nullptr,
                         bool may_replay = true);
  // The two passes of a micro-batch; the backward one is what `backward` makes of the loss. Returns
  // the loss.
  using Backward = std::function<void(const at::Tensor& loss)>;
  at::Tensor Passes(const Batch& batch, ForwardHook* hook, const Backward& backward);
  // Copies the micro-batch that comes next beside the work of this one.
  void CopyNextAhead(const std::vector<Batch>& batches, std::size_t micro_batch);
  // Of the step's own passes, not of those that are made again: copies the next batch ahead, and
  // evaluates where the recipe says so.
  void EndMicroBatch(const std::vector<Batch>& batches, std::size_t micro_batch);
  // Makes the passes of this step again, and compares.
  void RepeatPasses(const std::vector<Batch>& batches, const std::vector<double>& counts);
  // Replaces gradients and loss by their means over the ranks that had data. `count`: the weight of
  // this rank's loss.
  void ReduceOverRanks(double count, bool has_data);
  std::optional<at::ScalarType> ReduceDtype() const;  // of parallel.reduce_dtype
  // With parallel.overlap or divided gradients: they are reduced within the backward passes between
  // the two calls.
  bool ReducesWithin() const { return overlap_ || divided_gradients_; }
  void PrepareReduction();
  void PrepareDividedParameters();  // for telemetry, which reads them
  // Gathering parameters is waiting for ranks; what it took of `pass_s` is no computing.
  void CountGathering(double* pass_s);
  void BeginReduction(const std::vector<Batch>& batches, const std::vector<double>& counts);
  void FinishReduction();
  void LogStep();
  void MeasurePeak();  // of the device's rate
  void CountFlops(const std::vector<Batch>& batches);
  ForwardHook* BeginForwardParts();  // null: nobody asked for them
  void ReportBlocks();
  // Of each stage: the memory that is in use when it begins, and the most in it.
  void FollowStages();
  void ReportStages();
  void EndStage(const MemoryUse& memory);
  void BeginStepMemory();
  std::optional<MemoryUse> StepMemory();  // its peak is that of the whole step
  // Divides the gradients by the loss scale; true when the gradients of any rank overflowed.
  bool UnscaleGradients();
  // Clips and makes the update.
  void Update();
  // Makes the update and reports parameters that it did not reach, though they should train.
  void AuditedUpdate();
  double LearningRate() const;
  void ReportGradients();
  // What has gradients on this rank: the parameters, or its parts of them.
  const NamedTensors& GradientOwners() const;
  // Statistics of each parameter's gradient. With divided gradients a collective.
  std::vector<kernels::TensorStats> ReadGradients();
  void ReportMasters();  // where a formula asks about them

  void EndEpoch();
  void Evaluate();
  // Goes back to the weights of the best evaluation, and evaluates them. `stops`: before the run's
  // last step.
  void RestoreBest(bool stops);
  // Before fine-tuning: ties the weights to where they are.
  void Consolidate();
  Autocast RunPrecision() const;  // of forward passes
  // Scheduled sampling: makes some of the inputs the model's own predictions.
  void SampleInputs(Batch& batch);
  void ReportNonfinite(const std::vector<Batch>& batches);
  // Finds the origin, when the step's loss, gradients or activations are not finite.
  void DiagnoseNonfinite(const std::vector<Batch>& batches, const std::vector<double>& counts);

  // Keeps the ranks' parameters equal. False: all ranks went back to an earlier step.
  bool CheckReplicas();
  void AverageParameters();
  void BroadcastFromRankZero();
  void RollBack();

  StateDict Capture() const;
  // The part of it that says where the data stands.
  StateDict CapturePosition() const;
  // What the passes of a step change, as it is before them; for the evidence of a failing step.
  void KeepBeginning();
  // Loads the newest usable checkpoint. Where ranks with different parameters are made equal again,
  // it is the newest one with the same parameters on all ranks. False: there is none.
  enum class Return { kResume, kRollBack };
  bool Restore(Return how);
  // Where the checkpoint has another tokenizer than the data: does what checkpoint.tokenizer says.
  void RestoreTokenizer(const StateDict& state);
  bool AllRanksSay(bool yes);
  void SaveCheckpoint();

  // A checkpoint on its way to the disk.
  struct Saving {
    int steps_done = 0;
    std::size_t entries = 0;
    double digest = 0;          // param_digest at that point
    Json entry_digests;         // by name; null: not asked
    std::future<void> written;  // with the store's exception
  };

  const TrainingRecipe& recipe_;
  Parts& parts_;
  Clock& clock_;
  Telemetry& telemetry_;
  EventSink& events_;
  Loader loader_;
  NamedTensors parameters_;                      // in the model's order
  NamedTensors buffers_;                         // of the model
  std::optional<GradientHooks> gradient_hooks_;  // with optimizer.in_backward
  std::optional<OverlappedReduction> overlap_;   // with parallel.overlap, of several ranks
  std::optional<DividedGradients> divided_gradients_;
  std::optional<RecordedPasses> recorded_;  // with cuda_graphs
  std::optional<Repetition> repetition_;    // with audit.repeat_every
  NonfiniteDiagnosis diagnosis_;
  CoverageAudit coverage_;
  std::optional<ForwardParts> forward_parts_;  // where memory is limited, or a formula asks
  std::int64_t reported_peak_ = 0;             // of memory, in bytes
  struct EnteredStage {
    Stage stage;
    std::chrono::steady_clock::time_point at;
    Json bytes;
    std::int64_t peak_bytes = 0;
    std::vector<std::int64_t> moments = {};
  };
  std::vector<EnteredStage> entered_;    // of the step in progress, where a formula asks
  std::optional<MemoryUse> highest_;     // of these stages
  std::optional<double> peak_flops_;     // in a second, where a formula asks
  std::optional<SeenSpans> seen_spans_;  // where a formula asks about them
  std::optional<EarlyStop> early_stop_;
  std::optional<Consolidation> consolidation_;  // where fine-tuning has it
  bool coverage_due_;
  EvidenceFolder evidence_;
  StepScalars now_;                                 // of the step in progress
  StateDict beginning_;                             // of the step in progress, see KeepBeginning()
  std::vector<kernels::TensorStats> gradients_;     // of the step in progress, as parameters_
  bool epoch_over_ = false;                         // it ended within the step in progress
  std::optional<EpochDrawn> drawn_ = EpochDrawn();  // in this epoch so far; empty: nobody knows
  bool nonfinite_seen_ = false;
  std::int64_t skipped_updates_ = 0;
  KeptDigests kept_digests_;
  int rollbacks_ = 0;
  std::optional<int> resumed_at_;  // the step at which this process resumed
  std::optional<Saving> saving_;
};

}  // namespace trainwreck
