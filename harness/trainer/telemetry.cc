#include "harness/trainer/telemetry.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "harness/protocol/digest.h"

namespace trainwreck {
namespace {

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

double Norm(double squares) { return std::sqrt(squares); }

}  // namespace

TraceSink::TraceSink(const std::string& path, const Clock& clock)
    : folder_(path.substr(0, path.rfind('/'))),
      writer_(path),
      clock_(clock),
      began_(std::chrono::steady_clock::now()) {}

double TraceSink::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void TraceSink::Start(Json fields) {
  fields["t"] = "start";
  fields["time"] = elapsed_s();
  writer_.Write(fields);
}

void TraceSink::Report(const std::string& name, Json fields) {
  fields["t"] = "event";
  fields["event"] = name;
  fields["step"] = clock_.step;
  fields["time"] = elapsed_s();
  writer_.Write(fields);
}

void TraceSink::Collective(int call, const std::string& op, const std::string& shape,
                           const std::string& dtype) {
  writer_.WriteLine("{\"t\":\"collective\",\"step\":" + std::to_string(clock_.step) +
                    ",\"call\":" + std::to_string(call) + ",\"op\":\"" + op + "\",\"shape\":\"" +
                    shape + "\",\"dtype\":\"" + dtype + "\"}");
}

void TraceSink::Step(std::string line) { writer_.WriteLine(std::move(line)); }

void TraceSink::End(const std::string& why) {
  writer_.Write({{"t", "end"}, {"why", why}, {"step", clock_.step}, {"time", elapsed_s()}});
}

Telemetry::Telemetry(TraceSink& sink, const std::vector<std::string>& record)
    : sink_(sink), statm_fd_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {
  for (const std::string& signal : record) {
    const std::size_t brace = signal.find('{');
    if (brace == std::string::npos) {
      wants_digest_ = wants_digest_ || signal == "param_digest";
    } else {
      asked_.emplace_back(signal.substr(0, brace),
                          signal.substr(brace + 1, signal.find('}', brace) - brace - 1));
    }
  }
}

Telemetry::~Telemetry() {
  if (statm_fd_ >= 0) close(statm_fd_);
}

bool Telemetry::Asks(const std::string& signal, const std::string& parameter) const {
  return std::any_of(asked_.begin(), asked_.end(), [&](const auto& asked) {
    return asked.first == signal && GlobMatches(asked.second, parameter);
  });
}

void Telemetry::Watch(NamedTensors parameters, std::optional<double> entropy_floor) {
  entropy_floor_ = entropy_floor;
  watched_.clear();
  for (const auto& [name, parameter] : parameters) {
    Watched watched;
    watched.name = name;
    watched.now = parameter.detach();
    watched.before = watched.now.clone();
    watched.grad_norm = Asks("grad_norm", name);
    watched.update_norm = Asks("update_norm", name);
    watched.param_norm = Asks("param_norm", name);
    watched.updated = Asks("updated", name);
    watched_.push_back(std::move(watched));
  }
}

void Telemetry::Gradients(const std::vector<double>& norms) {
  for (std::size_t i = 0; i < watched_.size(); ++i) watched_[i].grad_norm_value = norms[i];
}

void Telemetry::BeforeUpdate() {
  for (Watched& watched : watched_) {
    std::memcpy(watched.before.mutable_data_ptr(), watched.now.const_data_ptr(),
                watched.now.nbytes());
  }
}

void Telemetry::AfterUpdate() {
  for (Watched& watched : watched_) {
    watched.change = CompareTensors(watched.now.const_data_ptr<float>(),
                                    watched.before.const_data_ptr<float>(), watched.now.numel());
  }
}

void Telemetry::Evaluated(double loss) { eval_loss_ = loss; }

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

void Telemetry::WriteStep(int step, const StepScalars& scalars, bool last) {
  double change_squares = 0;
  double now_squares = 0;
  for (const Watched& watched : watched_) {
    change_squares += watched.change.change_squares;
    now_squares += watched.change.now_squares;
  }
  RecordLine line("step");
  line.Add("step", step);
  line.Add("time", sink_.elapsed_s());
  line.Add("loss", scalars.loss);
  line.Add("grad_norm", scalars.grad_norm);
  line.Add("clipped", scalars.clipped ? 1 : 0);
  line.Add("lr", scalars.lr);
  line.Add("loss_scale", scalars.loss_scale);
  line.Add("overflow", scalars.overflow ? 1 : 0);
  line.Add("skipped_updates", scalars.skipped_updates);
  line.Add("update_norm", Norm(change_squares));
  line.Add("param_norm", Norm(now_squares));
  line.Add("nonfinite_grads", scalars.nonfinite_grads);
  line.Add("tokens", scalars.tokens);
  line.Add("epoch", scalars.epoch);
  line.Add("skipped", scalars.skipped);
  line.Add("step_s", scalars.step_s);
  line.Add("data_s", scalars.data_s);
  line.Add("comm_s", scalars.comm_s);
  line.Add("memory_bytes", MemoryBytes());
  if (scalars.memory) {
    line.Add("memory_allocated_bytes", static_cast<double>(scalars.memory->allocated_bytes));
    line.Add("memory_peak_bytes", static_cast<double>(scalars.memory->peak_bytes));
  }
  if (const auto& ids = scalars.sample_ids; !ids.empty()) {
    const std::string_view bytes(reinterpret_cast<const char*>(ids.data()),
                                 ids.size() * sizeof(ids[0]));
    line.Add("sample_digest", DigestSignal(Digest(bytes)));
    const auto [low, high] = std::minmax_element(ids.begin(), ids.end());
    line.Add("sample_id_min", static_cast<double>(*low));
    line.Add("sample_id_max", static_cast<double>(*high));
  }
  if (scalars.health) {
    const DeviceHealth& health = *scalars.health;
    if (health.temperature_c) line.Add("device_temperature_c", *health.temperature_c);
    if (health.clock_mhz) line.Add("device_clock_mhz", *health.clock_mhz);
    if (health.ecc_errors) line.Add("device_ecc_errors", *health.ecc_errors);
  }
  if (entropy_floor_) line.Add("entropy_floor", *entropy_floor_);
  if (eval_loss_) line.Add("eval_loss", *eval_loss_);
  eval_loss_.reset();
  NamedTensors all;
  for (const Watched& w : watched_) {
    if (w.grad_norm) line.Add("grad_norm{" + w.name + "}", w.grad_norm_value);
    if (w.update_norm) line.Add("update_norm{" + w.name + "}", Norm(w.change.change_squares));
    if (w.param_norm) line.Add("param_norm{" + w.name + "}", Norm(w.change.now_squares));
    if (w.updated) line.Add("updated{" + w.name + "}", static_cast<double>(w.change.changed));
    if (last || wants_digest_) all.emplace_back(w.name, w.now);
  }
  if (!all.empty()) line.Add("param_digest", DigestSignal(DigestTensors(all)));
  sink_.Step(std::move(line).Finish());
}

std::uint64_t DigestTensors(const NamedTensors& tensors) {
  std::uint64_t digest = 0;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = tensor.contiguous();
    digest = Digest(name, digest);
    digest = Digest({static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()}, digest);
  }
  return digest;
}

}  // namespace trainwreck
