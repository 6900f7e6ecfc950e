// The signals of a step that are single numbers, and those of the update's changes. One row
// describes a signal and says how it is read: --describe lists the rows, telemetry.cc writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/protocol/description.h"
#include "kernels/tensor_stats.h"
#include "trainer/parts.h"

namespace trainwreck {

// The samples that an epoch drew on this rank, from its first batch to its last.
struct EpochDrawn {
  double samples = 0;
  double id_sum = 0;
};

// The scalars of one optimizer step that only the loop knows.
struct StepScalars {
  double loss = 0;
  double grad_norm = 0;  // before clipping
  bool clipped = false;
  std::optional<double> applied_grad_norm;   // as the optimizer gets it, where asked for
  std::optional<double> leftover_gradients;  // where the step begins to gather its own, likewise
  std::optional<double> misplaced_targets;   // likewise
  std::optional<double> equal_inputs;        // samples, likewise
  std::optional<double> off_master;          // elements, likewise
  double lr = 0;
  double loss_scale = 1;
  bool overflow = false;  // on any rank: the update was skipped
  double skipped_updates = 0;
  double tokens = 0;       // targets, of this rank
  double loss_tokens = 0;  // those with a weight that is not 0
  double nonfinite_grads = 0;
  double epoch = 0;
  double skipped = 0;
  double step_s = 0;
  double cpu_s = 0;
  std::optional<double> device_step_s;  // where the device has a clock, and a formula asks
  double data_s = 0;
  double comm_s = 0;
  double comm_hidden_s = 0;
  double forward_s = 0;
  double backward_s = 0;
  double update_s = 0;
  double log_s = 0;
  std::optional<double> model_flops;  // of the step's forward and backward passes, where asked for
  std::optional<double> peak_flops;   // of the device in a second, likewise
  std::vector<std::int64_t> sample_ids;
  std::optional<EpochDrawn> ended_epoch;  // the epoch that ended in this step
  std::optional<MemoryUse> memory;        // peak_bytes: within the step
  std::optional<DeviceHealth> health;     // when the device's sensors were read
};

// The results of an evaluation: eval_loss, eval_bits_per_byte, free_running_accuracy,
// eval_seen_share.
struct Evaluation {
  double loss = 0;
  std::optional<double> bits_per_byte;  // of the text that this rank evaluated
  std::optional<double> free_running_accuracy;
  std::optional<double> seen_share;  // of the spans that this rank evaluated, where asked for
};

// How many parameters there are, in elements.
struct ParameterCounts {
  double all = 0;
  double trainable = 0;
  std::optional<double> copies;  // tensors, where asked for
};

// Gaps of the update: the numbers of tensors that it wrongly changed or left unchanged.
struct UpdateGaps {
  double untrained = 0;
  double frozen_moved = 0;
};

// Everything that a step's scalar signals are read from.
struct StepReading {
  const StepScalars& scalars;
  double time_s = 0;        // since the process began
  double memory_bytes = 0;  // resident, of the process
  std::optional<double> entropy_floor;
  std::optional<Evaluation> evaluation;   // of this step
  std::optional<ParameterCounts> counts;  // in the first record of a run
  std::optional<UpdateGaps> gaps;         // where asked for, and an update was made
};

struct StepSignal {
  SignalInfo info;
  std::optional<double> (*value)(const StepReading& step);  // empty: the step has none
};
const std::vector<StepSignal>& StepSignals();

// A signal from the parameters before and after the update: for all of them together, or for each
// one that a plan names.
struct ChangeSignal {
  SignalInfo info;
  double (*value)(const kernels::ChangeStats& change);
};
const std::vector<ChangeSignal>& ChangeSignals();

// The number of weighted targets that differ from the next token in their row and document; empty
// where targets are no tokens of a row.
std::optional<double> MisplacedTargets(const Batch& batch);

// The number of samples whose input equals, byte by byte, that of an earlier sample with another
// id; empty where a row is not one sample.
std::optional<double> EqualInputs(const Batch& batch);

const SignalInfo& ParameterDigest();  // of all parameters, or of each that a plan asks for

}  // namespace trainwreck
