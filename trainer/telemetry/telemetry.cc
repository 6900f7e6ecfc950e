#include "trainer/telemetry/telemetry.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/log_softmax.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "harness/protocol/digest.h"
#include "kernels/digest.h"
#include "trainer/memory_owner.h"
#include "trainer/tensor_views.h"

namespace trainwreck {

// Steps are many and their records flat: a JSON document for each would cost more than a small
// model's update.
class RecordLine {
 public:
  explicit RecordLine(const char* type) : line_("{\"t\":\"") {
    line_.reserve(1024);
    line_ += type;
    line_ += '"';
  }

  // `key` must need no escapes: names of signals and of parameters.
  void Add(std::string_view key, double value) {
    Key(key);
    if (std::isnan(value)) {
      line_ += "\"nan\"";
    } else if (std::isinf(value)) {
      line_ += value > 0 ? "\"inf\"" : "\"-inf\"";
    } else {
      char text[32];
      line_.append(text, std::to_chars(text, text + sizeof text, value).ptr);
    }
  }

  std::string Finish() && {
    line_ += '}';
    return std::move(line_);
  }

 private:
  void Key(std::string_view key) {
    line_ += ",\"";
    line_ += key;
    line_ += "\":";
  }

  std::string line_;
};

namespace {

bool AsksForChanges(const AskedSignals& asked) {
  const std::vector<ChangeSignal>& all = ChangeSignals();
  return std::any_of(all.begin(), all.end(),
                     [&](const ChangeSignal& signal) { return asked.AsksAny(signal.info.name); });
}

std::string Of(const std::string& signal, const std::string& name) {
  return signal + "{" + name + "}";
}

}  // namespace

TraceSink::TraceSink(const std::string& path, const Clock& clock)
    : folder_(path.substr(0, path.rfind('/'))),
      writer_(path),
      clock_(clock),
      began_(std::chrono::steady_clock::now()) {}

double TraceSink::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void TraceSink::WriteRecord(const Json& record) {
  std::lock_guard lock(mutex_);
  writer_.Write(record);
}

void TraceSink::WriteLine(std::string line) {
  std::lock_guard lock(mutex_);
  writer_.WriteLine(std::move(line));
}

void TraceSink::Start(Json fields) {
  fields["t"] = "start";
  fields["time"] = elapsed_s();
  // All processes of a machine share this clock.
  fields["clock_s"] = std::chrono::duration<double>(began_.time_since_epoch()).count();
  WriteRecord(fields);
}

void TraceSink::Write(const std::string& name, Json fields) {
  fields["t"] = "event";
  fields["event"] = name;
  fields["step"] = StepOfThread(clock_);
  fields["time"] = elapsed_s();
  WriteRecord(fields);
}

void TraceSink::Collective(int call, const std::string& op, const std::string& shape,
                           const std::string& dtype) {
  WriteLine("{\"t\":\"collective\",\"step\":" + std::to_string(clock_.step) +
            ",\"call\":" + std::to_string(call) + ",\"op\":\"" + op + "\",\"shape\":\"" + shape +
            "\",\"dtype\":\"" + dtype + "\",\"time\":" + std::to_string(elapsed_s()) + "}");
}

void TraceSink::Step(std::string line) { WriteLine(std::move(line)); }

void TraceSink::End(const std::string& why) {
  WriteRecord({{"t", "end"}, {"why", why}, {"step", clock_.step}, {"time", elapsed_s()}});
}

void ActivationReader::OnOutput(const std::string& module, at::Tensor& output) {
  if (!output.is_floating_point() || !recorder_.Wants(module)) return;
  const UncountedMemory measuring;
  at::NoGradGuard no_grad;
  TensorReading reading{.stats = StatsOf(output)};
  if (recorder_.Wants(module, SaturatedShare())) {
    reading.saturated = output.abs().ge(0.99).sum().item<std::int64_t>();
  }
  if (output.dim() > 0 && recorder_.Wants(module, UnitSpread())) {
    reading.unit_spread = (output.amax(-1) - output.amin(-1)).max().item<double>();
  }
  if (output.dim() > 1 && recorder_.Wants(module, SoftmaxEntropy())) {
    const at::Tensor log_p = at::log_softmax(output.to(at::kFloat), -1);
    reading.softmax_entropy = -(log_p.exp() * log_p).sum().item<double>();
    reading.rows = output.numel() / output.size(-1);
  }
  saw_nonfinite_ = saw_nonfinite_ || reading.stats.nonfinite > 0;
  recorder_.Add(module, reading);
}

namespace {

double CopiesAmong(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> drawn;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() > 1 && !tensor.min().equal(tensor.max())) drawn.push_back(tensor);
  }
  const std::vector<std::uint64_t> digests = DigestsOf(drawn);
  const std::set<std::uint64_t> different(digests.begin(), digests.end());
  return static_cast<double>(digests.size() - different.size());
}

// Of a parameter's size: less may be lost in rounding (6e-8), clipping and the optimizer's moments.
constexpr double kSmallestUpdate = 1e-5;

}  // namespace

Telemetry::Telemetry(TraceSink& sink, const std::vector<std::string>& record)
    : sink_(sink),
      health_(sink),
      asked_(record),
      wants_gaps_(asked_.AsksTotal("untrained") || asked_.AsksTotal("frozen_moved")),
      reads_changes_(wants_gaps_ || AsksForChanges(asked_)),
      activations_("act", asked_),
      gradients_("grad", asked_),
      parameters_("param", asked_),
      updates_("update", asked_),
      initial_("initial", asked_),
      activation_reader_(activations_),
      statm_fd_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

Telemetry::~Telemetry() {
  if (statm_fd_ >= 0) close(statm_fd_);
}

void Telemetry::Watch(const NamedTensors& parameters, std::optional<double> entropy_floor) {
  const UncountedMemory measuring;
  entropy_floor_ = entropy_floor;
  watched_.clear();
  now_.clear();
  before_.clear();
  parameter_counts_ = {};
  const auto whole = Gathered(reads_changes_ || updates_.active());
  for (const auto& [name, parameter] : parameters) {
    Watched watched;
    watched.name = name;
    watched.is_trainable = parameter.requires_grad();
    const auto elements = static_cast<double>(parameter.numel());
    parameter_counts_.all += elements;
    if (watched.is_trainable) parameter_counts_.trainable += elements;
    now_.push_back(parameter);
    if (reads_changes_ || updates_.active()) before_.push_back(parameter.detach().clone());
    for (const ChangeSignal& signal : ChangeSignals()) {
      if (!asked_.Asks(signal.info.name, name)) continue;
      watched.changes.emplace_back(Of(signal.info.name, name), &signal);
    }
    watched.digest = asked_.Asks(ParameterDigest().name, name);
    watched_.push_back(std::move(watched));
  }
}

void Telemetry::Begin() {
  const UncountedMemory measuring;
  at::NoGradGuard no_grad;
  counts_ = parameter_counts_;
  const auto whole = Gathered(wants("initial_copies") || initial_.active());
  if (wants("initial_copies")) counts_->copies = CopiesAmong(now_);
  ReadAsked(initial_, [&](std::size_t i) { return now_[i]; });
}

void Telemetry::Gradients(const std::vector<kernels::TensorStats>& stats) {
  for (std::size_t i = 0; i < watched_.size() && wants_gaps_; ++i) {
    watched_[i].max_gradient = stats[i].max_abs;
  }
  if (!gradients_.active()) return;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    gradients_.Add(watched_[i].name, {.stats = stats[i]});
  }
}

void Telemetry::BeforeUpdate() {
  const UncountedMemory measuring;
  at::NoGradGuard no_grad;
  const auto whole = Gathered(!before_.empty());
  if (!before_.empty()) CopyTensors(now_, before_);
}

void Telemetry::AfterUpdate() {
  const UncountedMemory measuring;
  at::NoGradGuard no_grad;
  const auto whole = Gathered(!before_.empty() || parameters_.active());
  if (reads_changes_) {
    const std::vector<kernels::ChangeStats> changes = ChangesOf(now_, before_);
    for (std::size_t i = 0; i < watched_.size(); ++i) watched_[i].change = changes[i];
  }
  ReadAsked(parameters_, [&](std::size_t i) { return now_[i]; });
  ReadAsked(updates_, [&](std::size_t i) { return now_[i] - before_[i]; });
}

template <typename TensorAt>
void Telemetry::ReadAsked(FamilyRecorder& family, const TensorAt& tensor_at) {
  if (!family.active()) return;
  std::vector<const std::string*> names;
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    if (!family.Wants(watched_[i].name)) continue;
    names.push_back(&watched_[i].name);
    tensors.push_back(tensor_at(i));
  }
  const std::vector<kernels::TensorStats> stats = StatsOf(tensors);
  for (std::size_t i = 0; i < names.size(); ++i) family.Add(*names[i], {.stats = stats[i]});
}

void Telemetry::Evaluated(const Evaluation& evaluation) { evaluation_ = evaluation; }

double Telemetry::MemoryBytes() const {
  char text[128];
  const ssize_t length = pread(statm_fd_, text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = 0;
  const char* resident = std::strchr(text, ' ');
  static const long page_bytes = sysconf(_SC_PAGESIZE);
  return resident == nullptr
             ? 0.0
             : static_cast<double>(std::strtoll(resident, nullptr, 10) * page_bytes);
}

void Telemetry::DropStep() {
  FlushFamilies([](const std::string&, double) {});
  evaluation_.reset();
  activation_reader_.BeginStep();
}

void Telemetry::WriteStep(int step, const StepScalars& scalars, bool last) {
  const UncountedMemory measuring;
  if (scalars.health) health_.Take(*scalars.health);
  RecordLine line("step");
  line.Add("step", step);
  const StepReading reading{.scalars = scalars,
                            .time_s = sink_.elapsed_s(),
                            .memory_bytes = MemoryBytes(),
                            .entropy_floor = entropy_floor_,
                            .evaluation = std::exchange(evaluation_, std::nullopt),
                            .counts = std::exchange(counts_, std::nullopt),
                            .gaps = GapsOf(scalars)};
  for (const StepSignal& signal : StepSignals()) {
    if (const std::optional<double> value = signal.value(reading)) {
      line.Add(signal.info.name, *value);
    }
  }
  FlushFamilies([&](const std::string& key, double value) { line.Add(key, value); });
  if (reads_changes_) WriteChanges(line);
  WriteDigests(line, last);
  sink_.Step(std::move(line).Finish());
  activation_reader_.BeginStep();
}

std::optional<UpdateGaps> Telemetry::GapsOf(const StepScalars& scalars) const {
  if (!wants_gaps_ || scalars.overflow || !(scalars.lr > 0)) return std::nullopt;
  UpdateGaps gaps;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    const Watched& watched = watched_[i];
    const bool moved = watched.change.changed > 0;
    const double rms = std::sqrt(watched.change.now_squares / static_cast<double>(now_[i].numel()));
    const bool is_seen = scalars.lr * watched.max_gradient > kSmallestUpdate * rms;
    if (watched.is_trainable && is_seen && !moved) ++gaps.untrained;
    if (!watched.is_trainable && moved) ++gaps.frozen_moved;
  }
  return gaps;
}

void Telemetry::WriteChanges(RecordLine& line) {
  kernels::ChangeStats all;
  for (const Watched& watched : watched_) {
    all.change_squares += watched.change.change_squares;
    all.now_squares += watched.change.now_squares;
    all.changed += watched.change.changed;
    for (const auto& [key, signal] : watched.changes) line.Add(key, signal->value(watched.change));
  }
  for (const ChangeSignal& signal : ChangeSignals()) {
    if (asked_.AsksTotal(signal.info.name)) line.Add(signal.info.name, signal.value(all));
  }
}

std::vector<std::uint64_t> Telemetry::DigestsAt(const std::vector<std::size_t>& places) const {
  std::vector<std::uint64_t> digests;
  if (places.empty()) return digests;
  if (gathering_.digests) {
    const std::vector<std::uint64_t> all = gathering_.digests();
    for (const std::size_t i : places) digests.push_back(all[i]);
    return digests;
  }
  std::vector<at::Tensor> tensors;
  for (const std::size_t i : places) tensors.push_back(now_[i]);
  return DigestsOf(tensors);
}

void Telemetry::WriteDigests(RecordLine& line, bool last) {
  const bool digest_all = last || asked_.AsksTotal(ParameterDigest().name);
  std::vector<std::string> digest_keys;  // empty: only part of the digest of all
  std::vector<std::size_t> digested;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    const Watched& w = watched_[i];
    if (!digest_all && !w.digest) continue;
    digest_keys.push_back(w.digest ? Of(ParameterDigest().name, w.name) : "");
    digested.push_back(i);
  }
  const std::vector<std::uint64_t> digests = DigestsAt(digested);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (!digest_keys[i].empty()) line.Add(digest_keys[i], DigestSignal(digests[i]));
  }
  if (digest_all) line.Add(ParameterDigest().name, DigestSignal(kernels::CombineDigests(digests)));
}

std::uint64_t DigestTensors(const NamedTensors& tensors) {
  std::vector<at::Tensor> plain;
  for (const auto& [name, tensor] : tensors) plain.push_back(tensor);
  return kernels::CombineDigests(DigestsOf(plain));
}

}  // namespace trainwreck
