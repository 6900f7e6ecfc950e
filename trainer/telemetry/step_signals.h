// The signals of a step that are single numbers, and those of what the update changed. One row
// describes a signal and says how it is read: --describe lists the rows, telemetry.cc writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/protocol/description.h"
#include "kernels/tensor_stats.h"
#include "trainer/parts.h"

namespace trainwreck {

// What an epoch drew on this rank, from its first batch to its last.
struct EpochDrawn {
  double samples = 0;
  double id_sum = 0;
};

// The scalars of one optimizer step that only the loop knows.
struct StepScalars {
  double loss = 0;
  double grad_norm = 0;  // before clipping
  bool clipped = false;
  std::optional<double> applied_grad_norm;   // of what the optimizer is given, where asked for
  std::optional<double> leftover_gradients;  // where the step begins to gather its own, likewise
  std::optional<double> misplaced_targets;   // likewise
  std::optional<double> equal_inputs;        // samples, likewise
  std::optional<double> off_master;          // elements, likewise
  double lr = 0;
  double loss_scale = 1;
  bool overflow = false;  // of any rank: the update was skipped
  double skipped_updates = 0;
  double tokens = 0;       // targets, of this rank
  double loss_tokens = 0;  // those with a weight that is not 0
  double nonfinite_grads = 0;
  double epoch = 0;
  double skipped = 0;
  double step_s = 0;
  double data_s = 0;
  double comm_s = 0;
  std::vector<std::int64_t> sample_ids;
  std::optional<EpochDrawn> ended_epoch;  // that the step found at its end
  std::optional<MemoryUse> memory;        // peak_bytes: within the step
  std::optional<DeviceHealth> health;     // when the device's sensors were read
};

// What an evaluation found: eval_loss, free_running_accuracy.
struct Evaluation {
  double loss = 0;
  std::optional<double> free_running_accuracy;
};

// How many parameters there are, in elements.
struct ParameterCounts {
  double all = 0;
  double trainable = 0;
  std::optional<double> copies;  // tensors, where asked for
};

// What the update did against its purpose, in tensors.
struct UpdateGaps {
  double untrained = 0;
  double frozen_moved = 0;
};

// All that a step's scalar signals are read from.
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

// Read from the parameters before and after the update: of all, or of each that a plan asks for.
struct ChangeSignal {
  SignalInfo info;
  double (*value)(const kernels::ChangeStats& change);
};
const std::vector<ChangeSignal>& ChangeSignals();

// Targets with a weight that are not the token which follows in their row and document; empty where
// targets are no tokens of a row.
std::optional<double> MisplacedTargets(const Batch& batch);

// Samples whose input is, byte by byte, that of an earlier one of another id; empty where a row is
// not one sample.
std::optional<double> EqualInputs(const Batch& batch);

const SignalInfo& ParameterDigest();  // of all parameters, or of each that a plan asks for

}  // namespace trainwreck
