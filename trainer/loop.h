// The training loop: one optimizer step after the other, over the interfaces of parts.h. Read Run()
// first. Files of their own (loop_*.cc) have checkpoints, the ranks' replicas, and steps that are
// not finite.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/loader.h"
#include "trainer/models/precision.h"
#include "trainer/optimizers/in_backward.h"
#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"
#include "trainer/telemetry/coverage.h"
#include "trainer/telemetry/evidence.h"
#include "trainer/telemetry/nonfinite.h"
#include "trainer/telemetry/telemetry.h"

namespace trainwreck {

enum class EndReason { kCompleted, kPhaseDone };
const char* ToString(EndReason reason);

// How far to go and where to start.
struct LoopRange {
  std::optional<int> until;  // the phase ends after so many optimizer steps, with a checkpoint
  bool resume = false;       // from the newest usable checkpoint, when there is one
};

class TrainingLoop {
 public:
  // All references must outlive the loop; evidence of a failing step goes below `trace_dir`.
  TrainingLoop(const TrainingRecipe& recipe, Parts& parts, Clock& clock, Telemetry& telemetry,
               EventSink& events, std::string trace_dir);

  // Throws what the parts throw; GuardStop when a guard says to stop.
  EndReason Run(const LoopRange& range);

  // Ids of the batch in progress, to name in the report of an exception.
  const std::vector<std::int64_t>& current_samples() const { return now_.sample_ids; }

 private:
  void TrainStep();
  // All of a step between its batches and the next: forward, backward and the update, which is made
  // behind the backward pass or within it.
  void UpdateAfterBackward(const std::vector<Batch>& batches);
  void UpdateInBackward(const std::vector<Batch>& batches);
  // As soon as its gradient is there, which is then freed.
  void UpdateParameter(std::size_t i);
  std::optional<Batch> DrawBatch();  // empty: the epoch is over
  // The micro-batches of one step. Goes over the end of an epoch, unless that would split the step.
  std::vector<Batch> DrawBatches();
  void CountBatch(const Batch& batch);
  void CountDrawn(const std::vector<std::int64_t>& ids);  // for the epoch's sum
  // What each micro-batch counts in the mean of the step; 1 where it is alone.
  std::vector<double> CountsOf(const std::vector<Batch>& batches) const;
  // Gradients of the mean loss over all micro-batches, which count as `counts` says; returns that
  // loss. `hook`, if any, sees the forward passes; `after` is called behind each micro-batch, whose
  // number in the step it gets.
  using AfterMicroBatch = std::function<void(std::size_t)>;
  double ForwardBackward(const std::vector<Batch>& batches, const std::vector<double>& counts,
                         ForwardHook* hook, const AfterMicroBatch& after = nullptr);
  void EvaluateWithin(std::size_t micro_batch);
  // Replaces gradients and loss by their means over the ranks that had data. `count`: what this
  // rank's loss is a mean over.
  void ReduceOverRanks(double count, bool has_data);
  // Takes the loss scale out of the gradients; true when those of any rank overflowed.
  bool UnscaleGradients();
  // Clips and makes the update.
  void Update();
  // The update, and whether it reached all that should train.
  void AuditedUpdate();
  double LearningRate() const;
  void ReportGradients();
  void ReportMasters();  // where a formula asks about them

  void EndEpoch();
  void Evaluate();
  Autocast RunPrecision() const;  // of forward passes
  // Scheduled sampling: makes some of the inputs the model's own predictions.
  void SampleInputs(Batch& batch);
  void ReportNonfinite(const std::vector<Batch>& batches);
  // Where it came from, when the step's loss, gradients or activations are not finite.
  void DiagnoseNonfinite(const std::vector<Batch>& batches, const std::vector<double>& counts);

  // Keeping the ranks' parameters equal. False: all went back to an earlier step.
  bool CheckReplicas();
  void AverageParameters();
  void BroadcastFromRankZero();
  void RollBack();

  StateDict Capture() const;
  // From the newest usable checkpoint: where ranks that part are put together again, the newest
  // whose parameters are the same on all. False: there is none.
  enum class Return { kResume, kRollBack };
  bool Restore(Return how);
  bool AllRanksSay(bool yes);
  void SaveCheckpoint();

  const TrainingRecipe& recipe_;
  Parts& parts_;
  Clock& clock_;
  Telemetry& telemetry_;
  EventSink& events_;
  Loader loader_;
  NamedTensors parameters_;                      // in the model's order
  std::optional<GradientHooks> gradient_hooks_;  // with optimizer.in_backward
  NonfiniteDiagnosis diagnosis_;
  CoverageAudit coverage_;
  bool coverage_due_;
  EvidenceFolder evidence_;
  StepScalars now_;                                 // of the step in progress
  std::vector<kernels::TensorStats> gradients_;     // of the step in progress, as parameters_
  bool epoch_over_ = false;                         // it ended within the step in progress
  std::optional<EpochDrawn> drawn_ = EpochDrawn();  // in this epoch so far; empty: nobody knows
  bool nonfinite_seen_ = false;
  std::int64_t skipped_updates_ = 0;
  int rollbacks_ = 0;
  std::optional<int> resumed_at_;  // the step that this process went on from
};

}  // namespace trainwreck
