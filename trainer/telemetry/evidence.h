// Saves a step with non-finite numbers for a later look: a folder with step.json (what was found,
// loss, gradient norm, learning rate, loss scale, sample ids, statistics of every parameter and
// gradient before the update) and step-<n>.rank0.ckpt, in the format of checkpoint.h: the
// generators' states before the forward pass ("rng.torch", on a GPU "rng.cuda", too) and the
// batches ("batch.0.inputs", ...). Where the whole state before the step fits as well, it is in
// state/, a checkpoint from which a run makes the step again. All together stays under a bound:
// statistics come first, then tensors in that order as long as they fit, and what is left out is
// named. It is written once per run and rank; never throws.
#pragma once

#include <string>
#include <vector>

#include "kernels/tensor_stats.h"
#include "trainer/optimizers/optimizers.h"
#include "trainer/parts.h"
#include "trainer/telemetry/nonfinite.h"

namespace trainwreck {

struct Evidence {
  int step = 0;
  NonfiniteFinding finding;
  double loss = 0, grad_norm = 0, lr = 0, loss_scale = 1;
  const std::vector<Batch>& batches;
  const NamedTensors& parameters;
  const std::vector<kernels::TensorStats>& gradients;  // of the parameters, in their order
  StateDict rng;
  const StateDict& state;  // a checkpoint's entries, as before the step
};

struct EvidenceOptions {
  std::string path;  // of the folder
  int rank = 0;
  int world_size = 1;
  double max_mb = 16;  // 0: nothing is saved
};

class EvidenceFolder {
 public:
  // `events` must outlive it.
  EvidenceFolder(EvidenceOptions options, EventSink& events)
      : options_(std::move(options)),
        max_bytes_(static_cast<std::int64_t>(options_.max_mb * 1e6)),
        events_(events) {}

  // Whether a failing step will be saved.
  bool is_open() const { return max_bytes_ > 0 && !saved_; }

  // Reports the event `evidence_saved`. Does nothing the second time.
  void Save(const Evidence& evidence);

 private:
  // Returns the names of what did not fit.
  std::vector<std::string> Write(const Evidence& evidence) const;

  EvidenceOptions options_;
  std::int64_t max_bytes_;
  EventSink& events_;
  bool saved_ = false;
};

}  // namespace trainwreck
