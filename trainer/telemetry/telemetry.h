// The trace of a training run: its start, step, collective, event and end records. step_signals.h
// and tensor_signals.h list the signals.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/plan.h"
#include "harness/protocol/trace.h"
#include "trainer/models/forward_hook.h"
#include "trainer/optimizers/optimizers.h"
#include "trainer/parts.h"
#include "trainer/telemetry/health_report.h"
#include "trainer/telemetry/step_signals.h"
#include "trainer/telemetry/tensor_signals.h"

namespace trainwreck {

// Writes one rank's trace. Every record is one write(2), so events are on disk before what follows
// them. Threads beside the loop's may report events, too.
class TraceSink : public EventSink {
 public:
  // `path` is rank<k>.jsonl; it is appended to. `clock` must outlive the sink.
  TraceSink(const std::string& path, const Clock& clock);

  void Start(Json fields);
  void Write(const std::string& name, Json fields) override;
  void Collective(int call, const std::string& op, const std::string& shape,
                  const std::string& dtype);
  void Step(std::string line);  // a whole record
  void End(const std::string& why);
  double elapsed_s() const;
  const std::string& folder() const { return folder_; }  // of the run: where the trace lies

 private:
  void WriteRecord(const Json& record);
  void WriteLine(std::string line);

  std::string folder_;
  std::mutex mutex_;
  TraceWriter writer_;
  const Clock& clock_;
  std::chrono::steady_clock::time_point began_;
};

class RecordLine;

// Reads the outputs of the modules that a plan asks about: act_*.
class ActivationReader : public ForwardHook {
 public:
  explicit ActivationReader(FamilyRecorder& recorder) : recorder_(recorder) {}
  void OnOutput(const std::string& module, at::Tensor& output) override;
  bool Reads(const std::string& module) const override { return recorder_.Wants(module); }
  bool saw_nonfinite() const { return saw_nonfinite_; }
  void BeginStep() { saw_nonfinite_ = false; }

 private:
  FamilyRecorder& recorder_;
  bool saw_nonfinite_ = false;
};

// Collects a step's signals and writes its record. Reading tensors costs time, and a copy of the
// parameters costs memory, so this is done only when the plan's `record` asks for it:
// "update_norm", "updated{blocks.0.*}", "act_max{*}", "param_digest". The gradients' norm is always
// recorded, since clipping needs it.
class Telemetry {
 public:
  Telemetry(TraceSink& sink, const std::vector<std::string>& record);
  ~Telemetry();

  void Watch(const NamedTensors& parameters, std::optional<double> entropy_floor);
  // The hook for the forward passes of training; null when the plan asks for no activations.
  ForwardHook* activation_hook() { return activations_.active() ? &activation_reader_ : nullptr; }
  // Whether an output that was read in this step was not finite.
  bool saw_nonfinite_activation() const { return activation_reader_.saw_nonfinite(); }
  // Where the parameters that it watches are not always there: what they are there for as long as
  // it lives, and how all their digests are made.
  struct Gathering {
    std::function<std::shared_ptr<void>()> whole;
    std::function<std::vector<std::uint64_t>()> digests;
  };
  void set_gathering(Gathering gathering) { gathering_ = std::move(gathering); }
  // Reads the initial parameters: called before the first step of a run that does not resume.
  void Begin();
  // Takes the statistics of each parameter's gradient, before clipping.
  void Gradients(const std::vector<kernels::TensorStats>& stats);
  // Whether a formula mentions this signal, which only the loop can read.
  bool wants(const std::string& signal) const { return asked_.AsksTotal(signal); }
  void BeforeUpdate();                           // parameters are about to change
  void AfterUpdate();                            // parameters have changed
  void Evaluated(const Evaluation& evaluation);  // goes into the next record
  void DropStep();  // the step in progress is given up, and gets no record
  // With `last`, the record has the parameters' digest whether the plan asks for it or not.
  void WriteStep(int step, const StepScalars& scalars, bool last);
  HealthReport& health() { return health_; }  // which gets the readings of the steps' records

 private:
  // The signals of one parameter.
  struct Watched {
    std::string name;
    std::vector<std::pair<std::string, const ChangeSignal*>> changes;  // "updated{NAME}", ...
    bool digest = false;
    bool is_trainable = true;
    double max_gradient = 0;      // of this step, the largest magnitude of an element
    kernels::ChangeStats change;  // where changes are read
  };
  // Statistics of tensor_at(i) for each parameter whose `family` is asked for, in one read.
  template <typename TensorAt>
  void ReadAsked(FamilyRecorder& family, const TensorAt& tensor_at);
  template <typename AddValue>
  void FlushFamilies(const AddValue& add) {
    for (FamilyRecorder* family :
         {&activations_, &gradients_, &parameters_, &updates_, &initial_}) {
      if (family->active()) family->Flush(add);
    }
  }
  void WriteChanges(RecordLine& line);
  void WriteDigests(RecordLine& line, bool last);
  std::vector<std::uint64_t> DigestsAt(const std::vector<std::size_t>& places) const;
  // Keeps the parameters there, if `reads`.
  std::shared_ptr<void> Gathered(bool reads) const {
    return reads && gathering_.whole ? gathering_.whole() : nullptr;
  }
  std::optional<UpdateGaps> GapsOf(const StepScalars& scalars) const;
  double MemoryBytes() const;

  TraceSink& sink_;
  HealthReport health_;
  AskedSignals asked_;
  const bool wants_gaps_;
  const bool reads_changes_;  // some of ChangeSignals(), or for the gaps
  FamilyRecorder activations_, gradients_, parameters_, updates_, initial_;
  ActivationReader activation_reader_;
  std::vector<Watched> watched_;
  std::vector<at::Tensor> now_;  // the parameters, as watched_
  Gathering gathering_;
  std::vector<at::Tensor> before_;  // a copy of them, where what the update changes is read
  std::optional<double> entropy_floor_;
  std::optional<Evaluation> evaluation_;
  ParameterCounts parameter_counts_;
  std::optional<ParameterCounts> counts_;  // until they are written
  int statm_fd_ = -1;
};

// A digest of all values, in the order given.
std::uint64_t DigestTensors(const NamedTensors& tensors);

}  // namespace trainwreck
