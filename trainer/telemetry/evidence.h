// Saves a step with non-finite numbers for a later look: a folder with step.json (what was found,
// loss, gradient norm, learning rate, loss scale, sample ids, statistics of every parameter and
// gradient before the update) and step-<n>.rank0.ckpt, in the format of checkpoint.h: the
// generators' states before the forward pass ("rng.torch", on a GPU "rng.cuda", too) and the
// batches ("batch.0.inputs", ...). All together stays under a bound: statistics come first, then
// tensors in that order as long as they fit, and what is left out is named. It is written once per
// run and rank; never throws.
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
};

class EvidenceFolder {
 public:
  // `events` must outlive it.
  EvidenceFolder(std::string path, double max_mb, EventSink& events)
      : path_(std::move(path)),
        max_bytes_(static_cast<std::int64_t>(max_mb * 1e6)),
        events_(events) {}

  // Reports the event `evidence_saved`. Does nothing the second time.
  void Save(const Evidence& evidence);

 private:
  // Returns the names of what did not fit.
  std::vector<std::string> Write(const Evidence& evidence) const;

  std::string path_;
  std::int64_t max_bytes_;
  EventSink& events_;
  bool saved_ = false;
};

}  // namespace trainwreck
