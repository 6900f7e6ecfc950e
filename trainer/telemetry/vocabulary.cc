#include "trainer/telemetry/vocabulary.h"

#include <utility>

#include "trainer/recipe/recipe.h"
#include "trainer/telemetry/tensor_signals.h"

namespace trainwreck {
namespace {

SignalInfo Measured(const char* name, const char* unit, Scale scale, const char* doc) {
  return {.name = name, .unit = unit, .scale = scale, .doc = doc};
}

SignalInfo Exact(const char* name, const char* unit, const char* doc) {
  return {.name = name, .unit = unit, .exact = true, .doc = doc};
}

// Exact, and spans decades.
SignalInfo Counted(const char* name, const char* unit, const char* doc) {
  return {.name = name, .unit = unit, .scale = Scale::kLog, .exact = true, .doc = doc};
}

SignalInfo PerModule(SignalInfo signal) {
  signal.per_module = true;
  return signal;
}

SignalInfo Sparse(SignalInfo signal) {
  signal.sparse = true;
  return signal;
}

void AddTensorSignals(std::vector<SignalInfo>& signals) {
  const auto add = [&](const char* family, const char* of_what, bool with_norm) {
    for (SignalInfo& signal : FamilySignals(family, of_what, with_norm)) {
      signals.push_back(std::move(signal));
    }
  };
  add("act", "a module's output in the step's forward passes; {glob} over modules", true);
  add("grad", "the gradient before clipping; {glob} over parameters", false);
  add("param", "the parameters after the step; {glob} over them", false);
  add("update", "the change that the step made; {glob} over parameters", false);
}

}  // namespace

std::vector<SignalInfo> TrainerSignals() {
  constexpr Scale kLog = Scale::kLog;
  constexpr Scale kLinear = Scale::kLinear;
  std::vector<SignalInfo> signals = {
      Measured("loss", "nats", kLog,
               "Mean training loss of the step, over micro-batches and ranks"),
      Sparse(Measured("eval_loss", "nats", kLog,
                      "Mean loss on held-out data, or what eval.data says, when evaluated")),
      Sparse(Measured("free_running_accuracy", "", kLinear,
                      "Share of evaluated targets that are the most probable token where the "
                      "model goes on from its own ones; with eval.free_running")),
      Measured("entropy_floor", "nats", kLog,
               "Entropy of the data source: no honest loss stays below it (markov data)"),
      PerModule(Measured("grad_norm", "", kLog,
                         "2-norm of the gradient before clipping: of all parameters, or of each "
                         "that {glob} names")),
      PerModule(Measured("update_norm", "", kLog, "2-norm of the change that the step made")),
      PerModule(Measured("param_norm", "", kLog, "2-norm of the parameters after the step")),
      PerModule(
          Exact("updated", "elements",
                "Elements whose bits the step changed: of all parameters, or of each that {glob} "
                "names")),
      Measured("lr", "", kLog, "Learning rate of the step"),
      Measured("loss_scale", "times", kLog, "What the loss was multiplied by; 1 without a scaler"),
      Exact("overflow", "",
            "1 when the scaler found a gradient of any rank that is not finite, and the update was "
            "skipped; else 0"),
      Exact("skipped_updates", "steps", "Updates skipped because of an overflow so far"),
      Exact("clipped", "", "1 when the gradients were clipped, else 0"),
      Exact("nonfinite_grads", "elements", "Gradient elements that are NaN or infinite"),
      Exact("tokens", "targets", "Targets that this rank trained on in the step"),
      Exact("loss_tokens", "targets", "Of them, those whose weight in the loss is not 0"),
      Exact("epoch", "", "Epoch that the step's data came from, from 0"),
      Exact("skipped", "samples", "Samples that the loader's guard has kept out so far"),
      Exact("sample_digest", "", "Digest of the ids of the step's samples, in order (52 bits)"),
      Exact("sample_id_min", "", "Smallest id among the step's samples"),
      Exact("sample_id_max", "", "Largest id among the step's samples"),
      PerModule(Exact("param_digest", "",
                      "Digest of all parameters after the step, or of each that {glob} names (52 "
                      "bits); where no formula mentions it, at the last step of a phase only")),
      Measured("time", "s", kLinear, "Since the process began"),
      Measured("step_s", "s", kLog, "Duration of the step"),
      Measured("data_s", "s", kLog, "Of it, drawing the batch"),
      Measured("comm_s", "s", kLog, "Of it, waiting for other ranks; 0 with one rank"),
      Measured("memory_bytes", "B", kLog, "Resident memory of the process"),
      Counted("memory_allocated_bytes", "B", "Tensor memory that is in use after the step"),
      Counted("memory_peak_bytes", "B", "Most tensor memory that was in use within the step"),
      Sparse(Measured("device_temperature_c", "C", kLinear,
                      "Of the GPU, when its sensors were read (once a second at most)")),
      Sparse(
          Measured("device_clock_mhz", "MHz", kLinear, "Of the GPU's multiprocessors, likewise")),
      Sparse(Exact("device_ecc_errors", "",
                   "Uncorrected memory errors of the GPU since its driver was loaded, likewise")),
  };
  AddTensorSignals(signals);
  return signals;
}

std::vector<EventInfo> TrainerEvents() {
  return {
      {.name = "nonfinite_batch",
       .fields = {"batch_step", "loss", "samples", "field"},
       .doc = "The first loss that is not finite, and which samples of its batch are at fault"},
      {.name = "first_nonfinite",
       .fields = {"stage", "module", "tensor", "kind", "count", "elements", "backward_op", "error"},
       .doc =
           "Where the first number that is not finite was born: stage data, parameters, forward, "
           "backward or after_backward; kind nan or inf. Of the rank's own passes, so that the "
           "rank at fault says data, parameters, forward or backward and its peers "
           "after_backward"},
      {.name = "evidence_saved",
       .fields = {"folder", "bytes", "left_out"},
       .doc = "What the failing step had is in a folder: see docs/guide/scenario.md"},
      {.name = "desync",
       .fields = {"ranks", "tensors", "reference"},
       .doc = "Rank 0 says so of all: these ranks' parameters differ, in these tensors, from those "
              "of the majority or, where there is none, of rank 0"},
      {.name = "rebroadcast",
       .fields = {"root", "entries"},
       .doc = "Parameters and optimizer state of all ranks became those of one"},
      {.name = "rolled_back",
       .fields = {"from_step", "to_step"},
       .doc = "All ranks went back to a checkpoint on which they agree"},
      {.name = "sample_rejected",
       .fields = {"sample", "field", "position", "value", "why"},
       .doc = "The loader's guard found a bad sample"},
      {.name = "batch_skipped",
       .fields = {"samples"},
       .doc = "The loader's guard dropped a whole batch"},
      {.name = "checkpoint_saved",
       .fields = {"steps_done", "entries", "digest"},
       .doc = "A checkpoint was handed to the store; digest is param_digest at that point"},
      {.name = "checkpoint_incomplete",
       .fields = {"steps_done", "missing"},
       .doc = "A checkpoint was refused because it lacks part of the state"},
      {.name = "resumed",
       .fields = {"from_step", "steps_done", "missing"},
       .doc = "Training goes on from a checkpoint"},
      {.name = "untrained",
       .fields = {"parameters", "why"},
       .doc = "audit.coverage: at the first update these parameters had \"no gradient\", or one "
              "that is not 0 and \"no update\""},
      {.name = "exception",
       .fields = {"what", "samples"},
       .doc = "The run ends with an error; samples are those of the batch in progress"},
      {.name = "out_of_memory",
       .fields = {"stage", "requested_bytes", "allocated_bytes", "limit_bytes", "what"},
       .doc = "An allocation failed; stage is build, restore, data, forward, backward, reduce, "
              "update, evaluate or checkpoint. The run ends with an exception"},
      {.name = "device_opened",
       .fields = {"kind", "name"},
       .doc = "Where this rank's tensors live from here on"},
      {.name = "evaluated",
       .fields = {"loss", "batches", "data"},
       .doc = "An evaluation; data is held_out or training"},
  };
}

TargetDescription DescribeTrainer(std::vector<FaultInfo> faults) {
  TargetDescription description;
  description.name = "trainwreck-trainer";
  description.version = kTrainerVersion;
  description.recipe = RecipeKeys();
  description.signals = TrainerSignals();
  description.events = TrainerEvents();
  description.faults = std::move(faults);
  description.features = {"device:cpu", "backend:gloo", "fork-server"};
  return description;
}

}  // namespace trainwreck
