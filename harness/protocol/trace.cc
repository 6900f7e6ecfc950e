#include "harness/protocol/trace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace trainwreck {

// Their headers, parse_json.h and trace_memory.h, are no part of the library that every file of the
// trainer depends on.
bool IsNestedTooDeep(std::string_view json_text);
std::int64_t MemoryBytes(const Json& value);

namespace {

constexpr std::size_t kMaxProblems = 8;
constexpr std::int64_t kPollBytes =
    8 << 20;                           // of a file at once: a flood must not hold up the caller
constexpr int kMaxStep = 100'000'000;  // a record beyond it is garbage, not a reason to allocate
constexpr std::size_t kSeriesBytes = 160;  // of a signal without its name and its values

int IntField(const Json& record, const char* key, int fallback) {
  auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return fallback;
  const double value = found->get<double>();
  return value >= -1 && value <= kMaxStep ? static_cast<int>(value) : fallback;
}

// A trace has one budget of memory, TraceLimits::values. Whatever is kept of it besides values
// counts as so many as would take the same room. False when that is over the limit.
bool Charge(std::int64_t bytes, std::int64_t& values, const TraceLimits& limits) {
  constexpr std::int64_t kValueBytes = sizeof(double) + sizeof(std::uint8_t);
  values += bytes / kValueBytes + 1;
  return values <= limits.values;
}

constexpr std::string_view kSpaces = " \t\r\n";

// The names that Python's json writes for numbers which JSON does not have, and those of json.h.
struct BareNumber {
  std::string_view name;
  std::string_view text;
};
constexpr BareNumber kBareNumbers[] = {
    {"NaN", "\"nan\""}, {"Infinity", "\"inf\""}, {"-Infinity", "\"-inf\""}};

// A value stands after one of ":[," and before one of ",]}": a key or a part of a longer word is
// none.
bool IsValuePlace(std::string_view line, std::size_t begin, std::size_t end) {
  const std::size_t before = begin == 0 ? begin : line.find_last_not_of(kSpaces, begin - 1);
  const std::size_t after = line.find_first_not_of(kSpaces, end);
  return begin > 0 && before != line.npos &&
         std::string_view(":[,").find(line[before]) != line.npos && after != line.npos &&
         std::string_view(",]}").find(line[after]) != line.npos;
}

// The line with its bare numbers, outside of strings, written as strings; empty: there are none.
std::string WithoutBareNumbers(std::string_view line) {
  std::string result;
  std::size_t copied = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (in_string) {
      if (line[at] == '\\') {
        ++at;  // whatever is escaped, it ends no string
      } else if (line[at] == '"') {
        in_string = false;
      }
      continue;
    }
    in_string = line[at] == '"';
    for (const BareNumber& bare : kBareNumbers) {
      if (line.compare(at, bare.name.size(), bare.name) != 0 ||
          !IsValuePlace(line, at, at + bare.name.size())) {
        continue;
      }
      result.append(line, copied, at - copied).append(bare.text);
      copied = at + bare.name.size();
      at = copied - 1;
      break;
    }
  }
  return copied == 0 ? "" : result.append(line, copied);
}

// A record, or no object where the line holds none.
Json ParseRecord(const std::string& line) {
  Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_discarded()) return record;
  const std::string plain = WithoutBareNumbers(line);
  return plain.empty() ? record : Json::parse(plain, nullptr, /*allow_exceptions=*/false);
}

// What the line is instead, for those who copied or packed a trace.
std::string WhatIsIt(const std::string& line) {
  const bool is_gzip = line.size() > 1 && line[0] == '\x1f' && line[1] == '\x8b';
  return is_gzip ? "gzip'ed: unpack it first" : "not a JSON object";
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
        trace_.lost.insert(file.rank);
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
        ++file.line;
        GiveUp(file,
               file.offset > limits_.file_bytes ? "the file is too large" : "the line is too long");
        file.tail.clear();
      }
    }
    if (last && !file.broken) TakeTail(file);
  }
  if (last) trace_.finished = true;
  return any;
}

// What a killed process left of its last line, or a last line that its writer did not end.
void TraceReader::TakeTail(File& file) {
  if (file.tail.find_first_not_of(kSpaces) == std::string::npos) return;
  if (ParseRecord(file.tail).is_object()) {
    ++file.line;
    Take(file, file.tail);
  } else {
    trace_.lost.insert(file.rank);
  }
  file.tail.clear();
}

void TraceReader::Complain(const File& file, const std::string& what) {
  trace_.lost.insert(file.rank);
  if (problems_.size() < kMaxProblems) {
    problems_.push_back(file.name + ":" + std::to_string(file.line) + ": " + what);
  }
}

void TraceReader::GiveUp(File& file, const std::string& what) {
  Complain(file, what);
  file.broken = true;  // nothing more of it is read
}

void TraceReader::CutTornTails() {
  for (File& file : files_) {
    // Never more than the tail: bytes that were not read yet are no tail.
    if (file.tail.empty() || lseek(file.fd, 0, SEEK_END) != file.offset) continue;
    file.offset -= static_cast<std::int64_t>(file.tail.size());
    file.tail.clear();
    trace_.lost.insert(file.rank);
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
  auto complain = [&](const std::string& what) { Complain(file, what); };
  auto give_up = [&](const std::string& what) { GiveUp(file, what); };
  if (static_cast<std::int64_t>(line.size()) > limits_.line_bytes) {
    return give_up("the line is too long");
  }
  if (line.find_first_not_of(kSpaces) == std::string::npos) return;  // no record, no loss
  if (IsNestedTooDeep(line)) return complain("not a JSON object");
  const Json record = ParseRecord(line);
  if (!record.is_object()) return complain(WhatIsIt(line));
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
      Series& series = trace_.series[{key, rank}];
      if (series.values.empty() &&
          !Charge(static_cast<std::int64_t>(kSeriesBytes + key.size()), values_, limits_)) {
        return give_up("too many signals");
      }
      if ((key == "time" && !Add(trace_.time_s[rank], step, *number)) ||
          !Add(series, step, *number)) {
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
    if (rank >= 0 && !Charge(sizeof(Event) + MemoryBytes(event.fields), values_, limits_)) {
      return give_up("the events are too large");
    }
    trace_.events.push_back(std::move(event));
  } else if (type == "collective") {
    if (++collectives_ > limits_.collectives) return give_up("too many collectives");
    if (!Charge(sizeof(Collective) + line.size(), values_, limits_)) {
      return give_up("the collectives are too large");
    }
    trace_.collectives[rank].push_back({IntField(record, "step", 0), IntField(record, "call", 0),
                                        TextField(record, "op"), TextField(record, "shape"),
                                        TextField(record, "dtype")});
  } else if (type == "start") {
    trace_.collectives[rank].clear();  // call indices count anew
    trace_.starts[rank] = record;
    trace_.end_why.erase(rank);  // it goes on
    file.newest_step = -1;
  } else {
    complain("unknown record type '" + type.substr(0, 40) + "'");
  }
}

}  // namespace trainwreck
