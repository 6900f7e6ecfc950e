#include "trainer/telemetry/step_signals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "harness/protocol/digest.h"

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

using Value = std::optional<double>;

constexpr Scale kLog = Scale::kLog;
constexpr Scale kLinear = Scale::kLinear;

std::vector<StepSignal> TrainingSignals() {
  using R = StepReading;
  return {
      {Measured("loss", "nats", kLog,
                "Mean training loss of the step, over micro-batches and ranks"),
       [](const R& r) -> Value { return r.scalars.loss; }},
      {Sparse(Measured("eval_loss", "nats", kLog,
                       "Mean loss on held-out data, or what eval.data says, when evaluated")),
       [](const R& r) { return r.evaluation ? Value(r.evaluation->loss) : Value(); }},
      {Sparse(Measured("eval_bits_per_byte", "bits", kLog,
                       "Held-out loss of this rank for each byte of the text, whichever tokens it "
                       "became: 8 is a guess among all bytes (text data)")),
       [](const R& r) { return r.evaluation ? r.evaluation->bits_per_byte : Value(); }},
      {Sparse(Measured("free_running_accuracy", "", kLinear,
                       "Share of evaluated targets that are the most probable token where the "
                       "model goes on from its own ones; with eval.free_running")),
       [](const R& r) { return r.evaluation ? r.evaluation->free_running_accuracy : Value(); }},
      {Sparse(Measured("eval_seen_share", "", kLinear,
                       "Share of the evaluated spans of 48 tokens, or rows of features, that this "
                       "rank trained on since it began; only where a formula mentions it")),
       [](const R& r) { return r.evaluation ? r.evaluation->seen_share : Value(); }},
      {Measured("entropy_floor", "nats", kLog,
                "Entropy of the data source: no honest loss stays below it (markov data)"),
       [](const R& r) { return r.entropy_floor; }},
      {PerModule(Measured("grad_norm", "", kLog,
                          "2-norm of the gradient before clipping: of all parameters, or of each "
                          "that {glob} names")),
       [](const R& r) -> Value { return r.scalars.grad_norm; }},
      {Measured("lr", "", kLog, "Learning rate of the step"),
       [](const R& r) -> Value { return r.scalars.lr; }},
      {Measured("loss_scale", "times", kLog, "What the loss was multiplied by; 1 without a scaler"),
       [](const R& r) -> Value { return r.scalars.loss_scale; }},
      {Exact("overflow", "",
             "1 when the scaler found a gradient of any rank that is not finite, and the update "
             "was skipped; else 0"),
       [](const R& r) -> Value { return r.scalars.overflow; }},
      {Exact("skipped_updates", "steps", "Updates skipped because of an overflow so far"),
       [](const R& r) -> Value { return r.scalars.skipped_updates; }},
      {Exact("clipped", "", "1 when the gradients were clipped, else 0"),
       [](const R& r) -> Value { return r.scalars.clipped; }},
      {Exact("nonfinite_grads", "elements", "Gradient elements that are NaN or infinite"),
       [](const R& r) -> Value { return r.scalars.nonfinite_grads; }},
      {Sparse(Measured("applied_grad_norm", "", kLog,
                       "2-norm of the gradient that the optimizer is given, after clipping; only "
                       "where a formula mentions it, at steps with an update")),
       [](const R& r) { return r.scalars.applied_grad_norm; }},
      {Sparse(Exact("leftover_gradients", "tensors",
                    "Parameters whose gradient is not 0 where the step begins to gather its own; "
                    "only where a formula mentions it")),
       [](const R& r) { return r.scalars.leftover_gradients; }},
  };
}

std::vector<StepSignal> ParameterSignals() {
  using R = StepReading;
  return {
      {Sparse(Exact("parameter_count", "elements",
                    "Of all parameters; in the first record of the run")),
       [](const R& r) { return r.counts ? Value(r.counts->all) : Value(); }},
      {Sparse(Exact("trainable_count", "elements",
                    "Of those that require a gradient; in the first record of the run")),
       [](const R& r) { return r.counts ? Value(r.counts->trainable) : Value(); }},
      {Sparse(Exact("initial_copies", "tensors",
                    "Parameters that begin with the bits of another, constant ones left out; only "
                    "where a formula mentions it, in the first record of the run")),
       [](const R& r) { return r.counts ? r.counts->copies : Value(); }},
      {Sparse(Exact("untrained", "tensors",
                    "Parameters of which the update changed no bit, though the rate times their "
                    "gradient is above 1e-5 of their RMS; only where a formula mentions it, at "
                    "steps with an update and a rate above 0")),
       [](const R& r) { return r.gaps ? Value(r.gaps->untrained) : Value(); }},
      {Sparse(Exact("frozen_moved", "tensors",
                    "Parameters that require no gradient and were changed all the same; where and "
                    "when untrained is recorded")),
       [](const R& r) { return r.gaps ? Value(r.gaps->frozen_moved) : Value(); }},
      {Sparse(Exact("off_master", "elements",
                    "Of parameters, those that are not their master rounded; only where a formula "
                    "mentions it and the optimizer keeps masters, at steps with an update")),
       [](const R& r) { return r.scalars.off_master; }},
  };
}

Value OfSamples(const StepReading& step, double (*value)(const std::vector<std::int64_t>& ids)) {
  const std::vector<std::int64_t>& ids = step.scalars.sample_ids;
  return ids.empty() ? Value() : Value(value(ids));
}

using Ids = std::vector<std::int64_t>;

double DigestOf(const Ids& ids) {
  return DigestSignal(Digest(
      std::string_view(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(ids[0]))));
}

double Smallest(const Ids& ids) {
  return static_cast<double>(*std::min_element(ids.begin(), ids.end()));
}

double Largest(const Ids& ids) {
  return static_cast<double>(*std::max_element(ids.begin(), ids.end()));
}

std::vector<StepSignal> DataSignals() {
  using R = StepReading;
  return {
      {Exact("tokens", "targets", "Targets that this rank trained on in the step"),
       [](const R& r) -> Value { return r.scalars.tokens; }},
      {Exact("loss_tokens", "targets", "Of them, those whose weight in the loss is not 0"),
       [](const R& r) -> Value { return r.scalars.loss_tokens; }},
      {Sparse(Exact("misplaced_targets", "targets",
                    "Of these, those that are not the next token of their row and document; only "
                    "where a formula mentions it, and the data are tokens")),
       [](const R& r) { return r.scalars.misplaced_targets; }},
      {Sparse(Exact("equal_inputs", "samples",
                    "Whose input an earlier sample of the micro-batch has too, which has another "
                    "id; only where a formula mentions it")),
       [](const R& r) { return r.scalars.equal_inputs; }},
      {Exact("epoch", "", "Epoch that the step's data came from, from 0"),
       [](const R& r) -> Value { return r.scalars.epoch; }},
      {Exact("skipped", "samples", "Samples that the loader's guard has kept out so far"),
       [](const R& r) -> Value { return r.scalars.skipped; }},
      {Sparse(Exact("epoch_samples", "samples",
                    "That this rank drew in the epoch before, at the step that finds its end")),
       [](const R& r) {
         return r.scalars.ended_epoch ? Value(r.scalars.ended_epoch->samples) : Value();
       }},
      {Sparse(Exact("epoch_id_sum", "", "Sum of the ids of these samples")),
       [](const R& r) {
         return r.scalars.ended_epoch ? Value(r.scalars.ended_epoch->id_sum) : Value();
       }},
      {Exact("sample_digest", "", "Digest of the ids of the step's samples, in order (52 bits)"),
       [](const R& r) { return OfSamples(r, DigestOf); }},
      {Exact("sample_id_min", "", "Smallest id among the step's samples"),
       [](const R& r) { return OfSamples(r, Smallest); }},
      {Exact("sample_id_max", "", "Largest id among the step's samples"),
       [](const R& r) { return OfSamples(r, Largest); }},
  };
}

Value OfMemory(const StepReading& step, std::int64_t MemoryUse::*bytes) {
  const std::optional<MemoryUse>& memory = step.scalars.memory;
  return memory ? Value(static_cast<double>((*memory).*bytes)) : Value();
}

template <MemoryOwner owner>
Value OfOwner(const StepReading& step) {
  const std::optional<MemoryUse>& memory = step.scalars.memory;
  if (!memory || !memory->peak_by_owner) return {};
  return static_cast<double>(BytesOf(*memory->peak_by_owner, owner));
}

// Parts of memory_peak_bytes, of which they are the sum.
std::vector<StepSignal> MemorySignals() {
  return {
      {Counted("memory_parameters_bytes", "B",
               "Of memory_peak_bytes, that of parameters (CPU; so are the next six)"),
       OfOwner<MemoryOwner::kParameters>},
      {Counted("memory_gradients_bytes", "B",
               "Of it, gradients, and what the backward pass computes with"),
       OfOwner<MemoryOwner::kGradients>},
      {Counted("memory_optimizer_bytes", "B",
               "Of it, the optimizer's state, and what an update computes with"),
       OfOwner<MemoryOwner::kOptimizer>},
      {Counted("memory_activations_bytes", "B",
               "Of it, what forward passes of training made, and their graph keeps"),
       OfOwner<MemoryOwner::kActivations>},
      {Counted("memory_evaluation_bytes", "B", "Of it, what evaluations made"),
       OfOwner<MemoryOwner::kEvaluation>},
      {Counted("memory_logging_bytes", "B", "Of it, what the logger made (log.every)"),
       OfOwner<MemoryOwner::kLogging>},
      {Counted("memory_other_bytes", "B", "Of it, the rest: data, telemetry, checkpoints"),
       OfOwner<MemoryOwner::kOther>},
  };
}

Value OfHealth(const StepReading& step, Value DeviceHealth::*sensor) {
  const std::optional<DeviceHealth>& health = step.scalars.health;
  return health ? (*health).*sensor : Value();
}

// By the clock of the GPU, where it was read.
double SecondsOf(const StepScalars& step) { return step.device_step_s.value_or(step.step_s); }

// Chowdhery et al. 2022, appendix B.
Value ModelFlopsUtilisation(const StepReading& step) {
  const StepScalars& of = step.scalars;
  if (!of.model_flops || !of.peak_flops) return {};
  return *of.model_flops / (SecondsOf(of) * *of.peak_flops);
}

std::vector<StepSignal> MachineSignals() {
  using R = StepReading;
  return {
      {Measured("time", "s", kLinear, "Since the process began"),
       [](const R& r) -> Value { return r.time_s; }},
      {Measured("step_s", "s", kLog, "Duration of the step"),
       [](const R& r) -> Value { return r.scalars.step_s; }},
      {Measured("cpu_s", "s", kLog,
                "Processor time of the process within the step, of all its threads: what the "
                "step computes on the CPU, however busy the machine is"),
       [](const R& r) -> Value { return r.scalars.cpu_s; }},
      {Sparse(Measured("device_step_s", "s", kLog,
                       "From the step's begin to its end by the clock of the GPU; only where a "
                       "formula mentions it")),
       [](const R& r) { return r.scalars.device_step_s; }},
      {Measured("data_s", "s", kLog, "Of it, drawing the batch"),
       [](const R& r) -> Value { return r.scalars.data_s; }},
      {Measured("comm_s", "s", kLog, "Of it, waiting for other ranks; 0 with one rank"),
       [](const R& r) -> Value { return r.scalars.comm_s; }},
      {Measured("comm_hidden_s", "s", kLog,
                "Communication beside the backward pass, which the step did not wait for "
                "(parallel.overlap)"),
       [](const R& r) -> Value { return r.scalars.comm_hidden_s; }},
      {Measured("forward_s", "s", kLog,
                "Of step_s, forward passes; on a GPU the time to queue them, as of the next two"),
       [](const R& r) -> Value { return r.scalars.forward_s; }},
      {Measured("backward_s", "s", kLog, "Of it, backward passes"),
       [](const R& r) -> Value { return r.scalars.backward_s; }},
      {Measured("update_s", "s", kLog, "Of it, the optimizer"),
       [](const R& r) -> Value { return r.scalars.update_s; }},
      {Measured("log_s", "s", kLog, "The logger, behind step_s; 0 where it is not called"),
       [](const R& r) -> Value { return r.scalars.log_s; }},
      {Measured("tokens_per_s", "1/s", kLog,
                "Targets that this rank trained on, per second: tokens over device_step_s, or over "
                "step_s where that is not measured"),
       [](const R& r) -> Value { return r.scalars.tokens / SecondsOf(r.scalars); }},
      {Sparse(Counted("model_flops", "FLOP",
                      "Floating-point operations that the model's forward and backward passes of "
                      "the step need on this rank, recomputation left out; only where a formula "
                      "mentions it")),
       [](const R& r) { return r.scalars.model_flops; }},
      {Sparse(Measured("mfu", "", kLog,
                       "Model FLOPs utilisation: model_flops in the step's time, of the rate that "
                       "the device reached with products of matrices when the run began; only "
                       "where a formula mentions it")),
       ModelFlopsUtilisation},
      {Measured("memory_bytes", "B", kLog, "Resident memory of the process"),
       [](const R& r) -> Value { return r.memory_bytes; }},
      {Counted("memory_allocated_bytes", "B", "Tensor memory that is in use after the step"),
       [](const R& r) { return OfMemory(r, &MemoryUse::allocated_bytes); }},
      {Counted("memory_peak_bytes", "B", "Most tensor memory that was in use within the step"),
       [](const R& r) { return OfMemory(r, &MemoryUse::peak_bytes); }},
      {Sparse(Counted("memory_reserved_bytes", "B",
                      "What the allocator holds after the step, in use or free (GPU)")),
       [](const R& r) -> Value {
         const auto& memory = r.scalars.memory;
         if (!memory || !memory->reserved_bytes) return {};
         return static_cast<double>(*memory->reserved_bytes);
       }},
  };
}

// Of a GPU, and of its driver.
std::vector<StepSignal> SensorSignals() {
  using R = StepReading;
  return {
      {Sparse(Measured("device_temperature_c", "C", kLinear,
                       "Of the GPU, when its sensors were read (once a second at most)")),
       [](const R& r) { return OfHealth(r, &DeviceHealth::temperature_c); }},
      {Sparse(
           Measured("device_clock_mhz", "MHz", kLinear, "Of the GPU's multiprocessors, likewise")),
       [](const R& r) { return OfHealth(r, &DeviceHealth::clock_mhz); }},
      {Sparse(Exact("device_ecc_errors", "",
                    "Uncorrected memory errors of the GPU since its driver was loaded, likewise")),
       [](const R& r) { return OfHealth(r, &DeviceHealth::ecc_errors); }},
      {Sparse(Exact("device_corrected_errors", "",
                    "Corrected memory errors of the GPU since its driver was loaded, likewise")),
       [](const R& r) { return OfHealth(r, &DeviceHealth::corrected_errors); }},
      {Sparse(Exact("device_remapped_rows", "rows",
                    "Rows of the GPU's memory that were replaced because of errors, in its life, "
                    "likewise")),
       [](const R& r) -> Value {
         if (!r.scalars.health || !r.scalars.health->remapped_rows) return {};
         const RemappedRows& rows = *r.scalars.health->remapped_rows;
         return rows.correctable + rows.uncorrectable;
       }},
      {Sparse(Measured("device_power_w", "W", kLinear, "Drawn by the GPU, likewise")),
       [](const R& r) { return OfHealth(r, &DeviceHealth::power_w); }},
      {Sparse(Exact("device_throttled", "",
                    "1 when the GPU's clocks are lowered, for its power, heat or safety; else 0; "
                    "likewise")),
       [](const R& r) -> Value {
         if (!r.scalars.health || !r.scalars.health->throttled) return {};
         return r.scalars.health->throttled->empty() ? 0 : 1;
       }},
  };
}

}  // namespace

const std::vector<StepSignal>& StepSignals() {
  static const std::vector<StepSignal> all = [] {
    std::vector<StepSignal> signals = TrainingSignals();
    for (const auto& more :
         {ParameterSignals(), DataSignals(), MachineSignals(), SensorSignals(), MemorySignals()}) {
      signals.insert(signals.end(), more.begin(), more.end());
    }
    return signals;
  }();
  return all;
}

const std::vector<ChangeSignal>& ChangeSignals() {
  using C = kernels::ChangeStats;
  static const std::vector<ChangeSignal> all = {
      {PerModule(Measured("update_norm", "", kLog, "2-norm of the change that the step made")),
       [](const C& c) { return std::sqrt(c.change_squares); }},
      {PerModule(Measured("param_norm", "", kLog, "2-norm of the parameters after the step")),
       [](const C& c) { return std::sqrt(c.now_squares); }},
      {PerModule(
           Exact("updated", "elements",
                 "Elements whose bits the step changed: of all parameters, or of each that {glob} "
                 "names")),
       [](const C& c) { return static_cast<double>(c.changed); }},
  };
  return all;
}

std::optional<double> MisplacedTargets(const Batch& batch) {
  if (batch.inputs.is_floating_point() || batch.targets.dim() != 2) return std::nullopt;
  const std::int64_t rest = batch.targets.size(1) - 1;
  const auto all_but_last = [&](const at::Tensor& of) { return of.narrow(1, 0, rest); };
  const auto all_but_first = [&](const at::Tensor& of) { return of.narrow(1, 1, rest); };
  at::Tensor misplaced = all_but_last(batch.targets).ne(all_but_first(batch.inputs));
  misplaced = misplaced.logical_and(all_but_last(batch.weights).ne(0));
  if (batch.documents.defined()) {
    const at::Tensor& of = batch.documents;
    misplaced = misplaced.logical_and(all_but_last(of).eq(all_but_first(of)));
  }
  return misplaced.sum().item<double>();
}

std::optional<double> EqualInputs(const Batch& batch) {
  if (batch.inputs.size(0) != static_cast<std::int64_t>(batch.ids.size())) return std::nullopt;
  const at::Tensor inputs = batch.inputs.cpu().contiguous();
  const std::size_t row_bytes = inputs.nbytes() / batch.ids.size();
  const char* row = static_cast<const char*>(inputs.const_data_ptr());
  std::map<std::string_view, std::int64_t> first_with;
  double equal = 0;
  for (const std::int64_t id : batch.ids) {
    const auto known = first_with.try_emplace(std::string_view(row, row_bytes), id).first;
    if (known->second != id) ++equal;
    row += row_bytes;
  }
  return equal;
}

const SignalInfo& ParameterDigest() {
  static const SignalInfo info = PerModule(
      Exact("param_digest", "",
            "Digest of all parameters after the step, or of each that {glob} names (52 bits); "
            "where no formula mentions it, at the last step of a phase only"));
  return info;
}

}  // namespace trainwreck
