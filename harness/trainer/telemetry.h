// What a run says about itself while it trains: the trace's start, step, collective, event and end
// records, and the table of signals and events that `--describe` lists.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/protocol/trace.h"
#include "harness/trainer/parts.h"

namespace trainwreck {

std::vector<SignalInfo> TrainerSignals();
std::vector<EventInfo> TrainerEvents();

// Writes one rank's trace. Every record is one write(2), so events are on disk before what follows
// them.
class TraceSink : public EventSink {
 public:
  // `path` is rank<k>.jsonl; it is appended to. `clock` must outlive the sink.
  TraceSink(const std::string& path, const Clock& clock);

  void Start(Json fields);
  void Report(const std::string& name, Json fields) override;
  void Collective(int call, const std::string& op, const std::string& shape,
                  const std::string& dtype);
  void Step(std::string line);  // a whole record
  void End(const std::string& why);
  double elapsed_s() const;

 private:
  TraceWriter writer_;
  const Clock& clock_;
  std::chrono::steady_clock::time_point began_;
};

// The scalars of one optimizer step that only the loop knows.
struct StepScalars {
  double loss = 0;
  double grad_norm = 0;  // before clipping
  bool clipped = false;
  double lr = 0;
  double tokens = 0;  // targets with weight, of this rank
  double nonfinite_grads = 0;
  double epoch = 0;
  double skipped = 0;
  double step_s = 0;
  double data_s = 0;
  double comm_s = 0;
  std::vector<std::int64_t> sample_ids;
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Collects a step's signals and writes its record. Per-tensor signals and digests cost time, so
// they are made only when the plan's `record` asks for them: "update_norm{blocks.0.*}",
// "param_digest".
class Telemetry {
 public:
  Telemetry(TraceSink& sink, const std::vector<std::string>& record);

  void Watch(NamedTensors parameters, std::optional<double> entropy_floor);
  void BeforeClip();            // gradients are reduced
  void BeforeUpdate();          // parameters are about to change
  void AfterUpdate();           // parameters have changed
  void Evaluated(double loss);  // goes into the next record as eval_loss
  void WriteStep(int step, const StepScalars& scalars, bool last);

 private:
  struct TensorSignal {
    std::string key;  // "update_norm{blocks.0.norm1.weight}"
    int tensor = 0;
    double value = 0;
  };

  TraceSink& sink_;
  std::vector<std::string> record_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> before_;
  std::vector<TensorSignal> grad_norms_, update_norms_, param_norms_, updated_;
  std::optional<double> entropy_floor_;
  std::optional<double> eval_loss_;
  double update_norm_ = 0;
  double param_norm_ = 0;
  bool wants_digest_ = false;
  int memory_fd_ = -1;
};

}  // namespace trainwreck
