// The training loop: one optimizer step after the other, over the interfaces of parts.h. Read Run()
// first.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/trainer/loader.h"
#include "harness/trainer/parts.h"
#include "harness/trainer/recipe.h"
#include "harness/trainer/telemetry.h"

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
  // All references must outlive the loop. Throws what the parts throw; GuardStop from the loader.
  TrainingLoop(const TrainingRecipe& recipe, Parts& parts, Clock& clock, Telemetry& telemetry,
               EventSink& events);

  EndReason Run(const LoopRange& range);

 private:
  void TrainStep();
  // The micro-batches of one step; goes over the end of an epoch when there is one.
  std::vector<Batch> DrawBatches();
  // Gradients of the mean loss over all micro-batches; returns that loss, detached.
  double ForwardBackward(const std::vector<Batch>& batches);
  // Mean of gradients and loss over the ranks that had data; returns the loss.
  double ReduceOverRanks(double loss, bool has_data);
  double ClipGradients();  // returns the norm before clipping
  double NextLearningRate() const;
  void EndEpoch();
  void Evaluate();
  void LookForBadSamples(const std::vector<Batch>& batches);

  StateDict Capture() const;
  void Restore();
  void SaveCheckpoint();
  void AuditTrainable();

  const TrainingRecipe& recipe_;
  Parts& parts_;
  Clock& clock_;
  Telemetry& telemetry_;
  EventSink& events_;
  Loader loader_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;  // by name, in the model's order
  std::optional<int> resumed_at_;  // the step a resumed run went on from
  int last_saved_ = -1;            // steps done of the newest checkpoint of this process
  bool reported_nonfinite_ = false;
};

}  // namespace trainwreck
