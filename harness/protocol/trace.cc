#include "harness/protocol/trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace trainwreck {
namespace {

constexpr std::size_t kMaxProblems = 8;
constexpr std::int64_t kPollBytes =
    8 << 20;                           // of a file at once: a flood must not hold up the caller
constexpr int kMaxStep = 100'000'000;  // a record beyond it is garbage, not a reason to allocate

int IntField(const Json& record, const char* key, int fallback) {
  auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return fallback;
  const double value = found->get<double>();
  return value >= -1 && value <= kMaxStep ? static_cast<int>(value) : fallback;
}

std::string TextField(const Json& record, const char* key) {
  auto found = record.find(key);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path)
    : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "trace file " + path);
}

TraceWriter::~TraceWriter() {
  if (fd_ >= 0) close(fd_);
}

void TraceWriter::Write(const Json& record) {
  WriteLine(record.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void TraceWriter::WriteLine(std::string line) {
  line += '\n';
  const char* data = line.data();
  std::size_t left = line.size();
  while (left > 0) {  // one write in all but the rarest cases: a signal, a nearly full disk
    const ssize_t written = write(fd_, data, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category(), "writing the trace");
    }
    data += written;
    left -= static_cast<std::size_t>(written);
  }
}

void Series::Set(int step, double value) {
  if (step < 0) return;
  if (step >= static_cast<int>(values.size())) {
    values.resize(step + 1, 0.0);
    present.resize(step + 1, 0);
  }
  values[step] = value;
  present[step] = 1;
}

const Series* RunTrace::Find(const std::string& signal, int rank) const {
  auto found = series.find({signal, rank});
  return found == series.end() ? nullptr : &found->second;
}

int RunTrace::last_step(int rank) const {
  auto found = time_s.find(rank);
  return found == time_s.end() ? -1 : static_cast<int>(found->second.values.size()) - 1;
}

struct TraceReader::File {
  std::string name;
  int rank = -1;  // -1: the launcher's
  int fd = -1;
  std::int64_t offset = 0;
  int line = 0;
  bool broken = false;  // over a limit: nothing more is read
  std::string tail;     // of an unfinished line
  // A step whose number was there before, told once: of the first signal of the file, since its
  // last start or return to an earlier step.
  std::string watched;
  int newest_step = -1;
  bool has_repeats = false;

  // Several records of one step are none: they may hold different signals.
  bool Repeats(const Json& record, int step) {
    if (has_repeats) return false;
    if (watched.empty()) {
      for (const auto& [key, value] : record.items()) {
        if (watched.empty() && key != "t" && key != "step" && key != "time") watched = key;
      }
    }
    if (watched.empty() || !record.contains(watched)) return false;
    has_repeats = step <= newest_step;
    newest_step = std::max(newest_step, step);
    return has_repeats;
  }

  File() = default;
  File(File&& other) noexcept
      : name(std::move(other.name)),
        rank(other.rank),
        fd(other.fd),
        offset(other.offset),
        line(other.line),
        broken(other.broken),
        tail(std::move(other.tail)),
        watched(std::move(other.watched)),
        newest_step(other.newest_step),
        has_repeats(other.has_repeats) {
    other.fd = -1;
  }
  ~File() {
    if (fd >= 0) close(fd);
  }
};

TraceReader::TraceReader(std::string folder, int world_size, int planned_steps, TraceLimits limits)
    : folder_(std::move(folder)), limits_(limits) {
  trace_.planned_steps = planned_steps;
  trace_.world_size = world_size;
  for (int rank = -1; rank < world_size; ++rank) {
    File file;
    file.rank = rank;
    file.name = rank < 0 ? "launcher.jsonl" : "rank" + std::to_string(rank) + ".jsonl";
    files_.push_back(std::move(file));
  }
}

TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;

bool TraceReader::Poll(bool last) {
  bool any = false;
  char buffer[1 << 16];
  for (File& file : files_) {
    if (file.broken) continue;
    if (file.fd < 0) {
      // O_NONBLOCK and the check: a target may have put a FIFO or a device there.
      file.fd = open((folder_ + "/" + file.name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
      if (file.fd < 0) continue;
      struct stat status;
      if (fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        problems_.push_back(file.name + ": not a regular file");
        file.broken = true;
        continue;
      }
    }
    ssize_t got;
    const std::int64_t enough = file.offset + kPollBytes;
    while (!file.broken && (last || file.offset < enough) &&
           (got = pread(file.fd, buffer, sizeof buffer, file.offset)) > 0) {
      file.offset += got;
      bytes_ += got;
      std::size_t begin = 0;
      const std::string_view chunk(buffer, static_cast<std::size_t>(got));
      for (std::size_t end; (end = chunk.find('\n', begin)) != std::string_view::npos;
           begin = end + 1) {
        file.tail.append(chunk.substr(begin, end - begin));
        ++file.line;
        any = true;
        Take(file, file.tail);
        file.tail.clear();
        if (file.broken) break;
      }
      if (file.broken) break;
      file.tail.append(chunk.substr(begin));
      if (static_cast<std::int64_t>(file.tail.size()) > limits_.line_bytes ||
          file.offset > limits_.file_bytes) {
        problems_.push_back(file.name + ":" + std::to_string(file.line + 1) +
                            (file.offset > limits_.file_bytes ? ": the file is too large"
                                                              : ": the line is too long"));
        file.broken = true;
        file.tail.clear();
      }
    }
  }
  if (last) trace_.finished = true;
  return any;
}

void TraceReader::CutTornTails() {
  for (File& file : files_) {
    // Never more than the tail: bytes that were not read yet are no tail.
    if (file.tail.empty() || lseek(file.fd, 0, SEEK_END) != file.offset) continue;
    file.offset -= static_cast<std::int64_t>(file.tail.size());
    file.tail.clear();
    if (truncate((folder_ + "/" + file.name).c_str(), file.offset) != 0) {
      problems_.push_back(file.name + ": its torn last line cannot be cut off");
    }
  }
}

bool TraceReader::Add(Series& series, int step, double value) {
  values_ += std::max<std::int64_t>(0, step + 1 - static_cast<std::int64_t>(series.values.size()));
  if (values_ > limits_.values) return false;
  series.Set(step, value);
  return true;
}

void TraceReader::Take(File& file, const std::string& line) {
  auto complain = [&](const std::string& what) {
    if (problems_.size() < kMaxProblems) {
      problems_.push_back(file.name + ":" + std::to_string(file.line) + ": " + what);
    }
  };
  auto give_up = [&](const std::string& what) {
    complain(what);
    file.broken = true;  // nothing more of it is read
  };
  if (static_cast<std::int64_t>(line.size()) > limits_.line_bytes) {
    return give_up("the line is too long");
  }
  const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object()) return complain("not a JSON object");
  const std::string type = TextField(record, "t");
  const int rank = file.rank;
  if (type == "step") {
    const int step = IntField(record, "step", -1);
    if (step < 0) return complain("a step record without a valid step");
    if (trace_.planned_steps > 0 && step >= trace_.planned_steps) {
      return complain("step " + std::to_string(step) + " is beyond the planned " +
                      std::to_string(trace_.planned_steps));
    }
    for (const auto& [key, value] : record.items()) {
      if (key == "t" || key == "step") continue;
      const std::optional<double> number = DecodeNumber(value);
      if (!number) {
        complain("signal '" + key + "' is no number");
        continue;
      }
      if ((key == "time" && !Add(trace_.time_s[rank], step, *number)) ||
          !Add(trace_.series[{key, rank}], step, *number)) {
        return give_up("too many values");
      }
    }
    if (file.Repeats(record, step)) {
      trace_.events.push_back({.name = "repeated_step",
                               .step = step,
                               .rank = rank,
                               .fields = {{"event", "repeated_step"}, {"step", step}}});
    }
    // A step without a time still counts as progress.
    if (!record.contains("time") && !Add(trace_.time_s[rank], step, 0.0)) {
      return give_up("too many values");
    }
  } else if (type == "event" || type == "end") {
    Event event;
    event.name = type == "end" ? "ended" : TextField(record, "event");
    if (event.name.empty()) return complain("an event without a name");
    if (static_cast<std::int64_t>(trace_.events.size()) >= limits_.events && rank >= 0) {
      return give_up("too many events");
    }
    event.step = IntField(record, "step", -1);
    event.rank = IntField(record, "rank", rank);
    event.time_s = DecodeNumber(record.value("time", Json(0.0))).value_or(0.0);
    if (event.name == "resumed" || event.name == "rolled_back") file.newest_step = -1;
    event.fields = record;
    if (!event.fields.contains("rank") && rank >= 0) event.fields["rank"] = rank;
    if (type == "end") trace_.end_why[rank] = TextField(record, "why");
    trace_.events.push_back(std::move(event));
  } else if (type == "collective") {
    if (++collectives_ > limits_.collectives) return give_up("too many collectives");
    trace_.collectives[rank].push_back({IntField(record, "step", 0), IntField(record, "call", 0),
                                        TextField(record, "op"), TextField(record, "shape"),
                                        TextField(record, "dtype")});
  } else if (type == "start") {
    trace_.collectives[rank].clear();  // call indices count anew
    trace_.starts[rank] = record;
    file.newest_step = -1;
  } else {
    complain("unknown record type '" + type.substr(0, 40) + "'");
  }
}

}  // namespace trainwreck
