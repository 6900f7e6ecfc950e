// Finds the origin of a run's first non-finite number. When a step's loss or gradients are NaN or
// infinite, its forward and backward passes are run again, on the same batch, parameters and random
// numbers: once with a hook on every module, and once in LibTorch's anomaly mode, which names the
// backward op. Before that, it costs a copy of the generators' state per step. It never changes the
// results of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/optimizers/optimizers.h"
#include "trainer/parts.h"

namespace trainwreck {

// The stages in the order of computation: a non-finite number makes those after it non-finite, too.
enum class NonfiniteStage {
  kData,          // the batch came with it
  kParameters,    // the update of an earlier step, or something else, wrote it
  kForward,       // the first module whose output has it
  kBackward,      // the first gradient that has it, from the loss back towards the data
  kAfterBackward  // gradients that this rank computed as finite: another rank's, or a hook's doing
};
const char* ToString(NonfiniteStage stage);

struct NonfiniteFinding {
  NonfiniteStage stage = NonfiniteStage::kForward;
  std::string module;  // "blocks.0.mlp.fc"; of data "batch"
  std::string tensor;  // "inputs", "weights", "output", or the parameter's name
  std::int64_t nans = 0, infs = 0, elements = 0;
};

class NonfiniteDiagnosis {
 public:
  // All must outlive it.
  NonfiniteDiagnosis(Model& model, const NamedTensors& parameters, Device& device,
                     EventSink& events);

  // Right before a step's forward pass.
  void BeforeForward();

  const StateDict& rng_before_forward() const { return rng_; }

  // Before the update of a step whose loss or gradients, as reduced over the ranks, are not finite.
  // `forward_backward` runs the step's passes again. Reports the event `first_nonfinite`: at most
  // one of the stages up to the forward pass, and one of those after it (with a loss scaler,
  // gradients overflow now and then in a healthy run, which must not hide what comes later).
  // Returns what it reported.
  std::optional<NonfiniteFinding> Explain(bool loss_is_finite, const std::vector<Batch>& batches,
                                          const std::function<void()>& forward_backward);

 private:
  std::optional<NonfiniteFinding> Find(const std::vector<Batch>& batches,
                                       const std::function<void()>& forward_backward);

  Model& model_;
  const NamedTensors& parameters_;
  Device& device_;
  EventSink& events_;
  StateDict rng_;  // as it was before the step's forward pass
  bool forward_explained_ = false;
  bool backward_explained_ = false;
};

}  // namespace trainwreck
