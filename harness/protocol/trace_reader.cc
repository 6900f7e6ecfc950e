#include "harness/protocol/trace_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "harness/protocol/description.h"
#include "harness/protocol/late_bytes.h"
#include "harness/protocol/trace_file.h"
#include "harness/protocol/trace_memory.h"
#include "harness/protocol/trace_record.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMaxProblems = 8;
constexpr std::int64_t kPollBytes =
    8 << 20;  // of a file at once: a flood must not hold up the caller
constexpr std::size_t kChunkBytes = 1 << 16;
constexpr std::size_t kSeriesBytes = 160;  // of a signal without its name and its values
constexpr std::int64_t kValueBytes = sizeof(double) + sizeof(std::uint8_t);

}  // namespace

struct TraceReader::Scratch {
  std::string chunk = std::string(kChunkBytes + simdjson::SIMDJSON_PADDING, '\0');
  std::string plain;  // the line at hand, without bare numbers
  FlatRecord record;  // the one at hand
  std::vector<std::pair<Series*, double>> values;
};

TraceReader::TraceReader(std::string folder, int world_size, int planned_steps, TraceLimits limits)
    : folder_(std::move(folder)),
      limits_(std::move(limits)),
      scratch_(std::make_unique<Scratch>()) {
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

// False when there is none, or no more is to be read of it.
bool TraceReader::Open(File& file) {
  if (file.broken) return false;
  if (file.fd.get() >= 0) return true;
  // O_NONBLOCK and the check: a target may have put a FIFO or a device there.
  file.fd = File::Descriptor(
      open((folder_ + "/" + file.name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd.get() < 0) return false;
  struct stat status;
  if (fstat(file.fd.get(), &status) == 0 && S_ISREG(status.st_mode)) return true;
  problems_.push_back(file.name + ": not a regular file");
  trace_.lost.insert(file.rank);
  file.broken = true;
  return false;
}

// At this a network file system asks its server how long the file is.
void TraceReader::OpenAgain(File& file) {
  File::Descriptor again(
      open((folder_ + "/" + file.name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat before, now;
  const bool is_same = again.get() >= 0 && fstat(file.fd.get(), &before) == 0 &&
                       fstat(again.get(), &now) == 0 && before.st_dev == now.st_dev &&
                       before.st_ino == now.st_ino;
  if (is_same) file.fd = std::move(again);
}

// False when there are zeros that it did not take.
bool TraceReader::ReadNew(File& file, bool last, bool takes_zeros) {
  ssize_t got;
  const std::int64_t enough = file.offset + kPollBytes;
  while (!file.broken && (last || file.offset < enough) &&
         (got = pread(file.fd.get(), scratch_->chunk.data(), kChunkBytes, file.offset)) > 0) {
    std::size_t size = static_cast<std::size_t>(got);
    const void* zero = takes_zeros ? nullptr : std::memchr(scratch_->chunk.data(), '\0', size);
    if (zero != nullptr) size = static_cast<const char*>(zero) - scratch_->chunk.data();
    file.offset += static_cast<std::int64_t>(size);
    bytes_ += static_cast<std::int64_t>(size);
    TakeChunk(file, size);
    if (zero != nullptr) return false;
  }
  return true;
}

bool TraceReader::Poll(bool last) {
  bool any = false;
  const auto give_up = std::chrono::steady_clock::now() + kLateBytes;
  for (File& file : files_) {
    if (!Open(file)) continue;
    if (last) OpenAgain(file);
    const int lines = file.line;
    bool is_whole = ReadNew(file, last, /*takes_zeros=*/false);
    while (last && !is_whole) {
      const bool is_late = std::chrono::steady_clock::now() >= give_up;
      if (!is_late) std::this_thread::sleep_for(kLatePause);
      OpenAgain(file);
      is_whole = ReadNew(file, last, is_late);
    }
    any = any || (file.rank >= 0 && file.line > lines);  // what the harness says is no progress
    if (last && !file.broken) TakeTail(file);
  }
  if (last) trace_.finished = true;
  return any;
}

void TraceReader::TakeChunk(File& file, std::size_t size) {
  const std::string_view chunk(scratch_->chunk.data(), size);
  std::size_t begin = 0;
  for (std::size_t end; (end = chunk.find('\n', begin)) != chunk.npos; begin = end + 1) {
    std::string_view line = chunk.substr(begin, end - begin);
    if (!file.tail.empty()) line = file.Completed(line);
    ++file.line;
    Take(file, line);
    file.tail.clear();
    if (file.broken) return;
  }
  file.tail.append(chunk.substr(begin));
  const bool is_large = file.offset > limits_.file_bytes;
  if (!is_large && static_cast<std::int64_t>(file.tail.size()) <= limits_.line_bytes) return;
  ++file.line;
  GiveUp(file, is_large ? "the file is too large" : "the line is too long");
  file.tail.clear();
}

// A kill within a write leaves a torn line. A step's is no loss: the run ended within this step, as
// if it had been killed a moment earlier. Any other line may be an event of which a claim asks.
void TraceReader::LoseTail(const File& file) {
  constexpr std::string_view kStep = R"({"t":"step",)";
  const std::string_view tail = file.tail;
  if (tail.substr(0, kStep.size()) != kStep) trace_.lost.insert(file.rank);
}

// What a killed process left of its last line, or a last line that its writer did not end.
void TraceReader::TakeTail(File& file) {
  if (file.tail.find_first_not_of(kSpaces) == std::string::npos) return;
  if (ParseRecord(file.tail).is_object()) {
    ++file.line;
    Take(file, file.Completed(""));
  } else {
    LoseTail(file);
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
  const std::int64_t mebibytes = limits_.room ? (limits_.room->bytes() + (1 << 20) - 1) >> 20 : 0;
  Complain(file, !is_over_room_ ? what
                                : "with it the traces of this case are over their bound of " +
                                      std::to_string(mebibytes) +
                                      " MiB of memory: record fewer signals or steps");
  file.broken = true;  // nothing more of it is read
}

void TraceReader::CutTornTails() {
  for (File& file : files_) {
    // Never more than the tail: bytes that were not read yet are no tail.
    if (file.tail.empty() || lseek(file.fd.get(), 0, SEEK_END) != file.offset) continue;
    file.offset -= static_cast<std::int64_t>(file.tail.size());
    LoseTail(file);
    file.tail.clear();
    if (truncate((folder_ + "/" + file.name).c_str(), file.offset) != 0) {
      problems_.push_back(file.name + ": its torn last line cannot be cut off");
    }
  }
}

// A trace has one budget of memory, TraceLimits::values. Whatever is kept of it besides values
// counts as so many as would take the same room.
bool TraceReader::Charge(std::int64_t bytes) {
  values_ += bytes / kValueBytes + 1;
  return values_ <= limits_.values && ChargeRoom(bytes);
}

bool TraceReader::ChargeRoom(std::int64_t bytes) {
  if (!limits_.room) return true;
  is_over_room_ = !limits_.room->Take(bytes);
  if (!is_over_room_) room_taken_ += bytes;
  return !is_over_room_;
}

bool TraceReader::Add(Series& series, int step, double value) {
  const std::int64_t grown = step + 1 - static_cast<std::int64_t>(series.values.size());
  if (grown > 0) {
    values_ += grown;
    if (values_ > limits_.values) return false;
    const std::int64_t capacity = static_cast<std::int64_t>(series.values.capacity());
    if (step >= capacity) {
      std::int64_t wanted = 2 * capacity;  // but no more than can be used
      if (trace_.planned_steps > 0) wanted = std::min<std::int64_t>(wanted, trace_.planned_steps);
      wanted = std::max<std::int64_t>(wanted, step + 1);
      if (!ChargeRoom((wanted - capacity) * kValueBytes)) return false;
      series.values.reserve(static_cast<std::size_t>(wanted));
      series.present.reserve(static_cast<std::size_t>(wanted));
    }
  }
  series.Set(step, value);
  return true;
}

// What others have may then be enough for them.
void TraceReader::LetGo() {
  RunTrace empty;
  empty.planned_steps = trace_.planned_steps;
  empty.world_size = trace_.world_size;
  empty.finished = trace_.finished;
  for (File& file : files_) {
    empty.lost.insert(file.rank);
    file.ForgetColumns();
    file.broken = true;
  }
  trace_ = std::move(empty);
  limits_.room->Take(-room_taken_);
  room_taken_ = 0;
}

void TraceReader::Take(File& file, std::string_view line) {
  if (static_cast<std::int64_t>(line.size()) > limits_.line_bytes) {
    return GiveUp(file, "the line is too long");
  }
  if (!TakeFlat(file, line)) TakeAny(file, std::string(line));
  if (is_over_room_) LetGo();
}

// The records of which there are many, and only where nothing about them is to be told: false
// leaves all to TakeAny.
bool TraceReader::TakeFlat(File& file, std::string_view line) {
  std::string_view type;
  if (!scratch_->record.Read(line, type)) {
    std::string& plain = scratch_->plain;
    plain = WithoutBareNumbers(line);
    if (plain.empty()) return false;
    plain.reserve(plain.size() + simdjson::SIMDJSON_PADDING);
    if (!scratch_->record.Read(plain, type)) return false;
  }
  if (type == "step") return TakeFlatStep(file);
  if (type != "collective") return false;
  TakeFlatCollective(file, line);
  return true;
}

bool TraceReader::TakeFlatStep(File& file) {
  const int step = scratch_->record.step == nullptr ? -1 : scratch_->record.step->Int(-1);
  if (step < 0 || (trace_.planned_steps > 0 && step >= trace_.planned_steps)) return false;
  if (!file.KnowsWatched(*this)) return false;
  auto& values = scratch_->values;
  values.clear();
  file.column = File::kNoColumn;
  bool has_watched = false;
  const double* time = nullptr;
  for (Member& member : scratch_->record.members) {
    if (member.key == "t" || member.key == "step") continue;
    const std::optional<double> number = member.Number();
    Series* series = number ? file.SeriesOf(member.key, *this) : nullptr;
    if (series == nullptr) return false;
    member.number = *number;
    if (member.key == "time") time = &member.number;
    has_watched = has_watched || series == file.watched_series;
    values.emplace_back(series, *number);
  }
  // From here on all is taken.
  bool fits = time == nullptr || Add(trace_.time_s[file.rank], step, *time);
  for (std::size_t i = 0; i < values.size() && fits; ++i) {
    fits = Add(*values[i].first, step, values[i].second);
  }
  if (fits && has_watched) NoteStep(file, step);
  if (file.new_world != 0) BeginWorld(file, step);
  // A step without a time still counts as progress.
  if (fits && time == nullptr) fits = Add(trace_.time_s[file.rank], step, 0.0);
  if (!fits) GiveUp(file, "too many values");
  return true;
}

void TraceReader::TakeFlatCollective(File& file, std::string_view line) {
  Collective collective;
  for (const Member& member : scratch_->record.members) {
    if (member.key == "step") collective.step = member.Int(0);
    if (member.key == "call") collective.call = member.Int(0);
    if (member.key == "op") collective.op = member.Text();
    if (member.key == "shape") collective.shape = member.Text();
    if (member.key == "dtype") collective.dtype = member.Text();
  }
  AddCollective(file, std::move(collective), line.size());
}

// Each is told once of a file.
void TraceReader::NoteStep(File& file, int step) {
  const auto note = [&](const char* name) {
    Json fields = {{"event", name}, {"step", step}, {"rank", file.rank}};
    Charge(static_cast<std::int64_t>(sizeof(Event)) + MemoryBytes(fields));
    trace_.events.push_back(
        {.name = name, .step = step, .rank = file.rank, .fields = std::move(fields)});
  };
  if (file.Repeats(step)) note("repeated_step");
  if (step == 0 && ++file.beginnings == 2) note("began_anew");
}

// At the first step of a start; what an earlier start said of this step and later ones is over.
void TraceReader::BeginWorld(File& file, int step) {
  trace_.worlds.erase(trace_.worlds.lower_bound(step), trace_.worlds.end());
  if (file.new_world > 0 && file.new_world <= trace_.world_size) {
    trace_.worlds[step] = file.new_world;
  }
  file.new_world = 0;
}

void TraceReader::AddCollective(File& file, Collective collective, std::size_t bytes) {
  if (++collectives_ > limits_.collectives) return GiveUp(file, "too many collectives");
  if (!Charge(static_cast<std::int64_t>(sizeof(Collective) + bytes))) {
    return GiveUp(file, "the collectives are too large");
  }
  trace_.collectives[file.rank].push_back(std::move(collective));
}

void TraceReader::TakeAny(File& file, const std::string& line) {
  if (line.find_first_not_of(kSpaces) == std::string::npos) return;  // no record, no loss
  const Json record = ParseRecord(line);
  if (!record.is_object()) return Complain(file, WhatIsIt(line));
  const std::string type = TextField(record, "t");
  const int rank = file.rank;
  if (type == "step") {
    TakeStep(file, record);
  } else if (type == "event" || type == "end") {
    TakeEvent(file, record, type == "end");
  } else if (type == "collective") {
    AddCollective(file,
                  {IntField(record, "step", 0), IntField(record, "call", 0),
                   TextField(record, "op"), TextField(record, "shape"), TextField(record, "dtype")},
                  line.size());
  } else if (type == "start") {
    const std::int64_t bytes = MemoryBytes(record);  // in place of the start before
    if (!ChargeRoom(bytes - file.start_bytes)) return GiveUp(file, "the start is too large");
    file.start_bytes = bytes;
    trace_.collectives[rank].clear();  // call indices count anew
    trace_.starts[rank] = record;
    trace_.end_why.erase(rank);  // it goes on
    file.newest_step = -1;
    if (rank == 0) file.new_world = IntField(record, "world_size", 0);
  } else if (type == "roles") {
    TakeRoles(record);
  } else {
    Complain(file, "unknown record type '" + type.substr(0, 40) + "'");
  }
}

// By role, so that there are a few at most, whatever a target writes.
void TraceReader::TakeRoles(const Json& record) {
  const Json signals = record.value("signals", Json::object());
  for (const std::string& role : SignalRoles()) {
    for (const auto& [own_name, given] : signals.items()) {
      if (given == role) own_names_[role] = own_name;
    }
  }
}

std::string TraceReader::NameOf(std::string_view key) const {
  const std::string_view name = key.substr(0, key.find('{'));
  for (const auto& [role, own_name] : own_names_) {
    if (own_name == name) return role + std::string(key.substr(name.size()));
  }
  return std::string(key);
}

void TraceReader::TakeStep(File& file, const Json& record) {
  const int rank = file.rank;
  const int step = IntField(record, "step", -1);
  if (step < 0) return Complain(file, "a step record without a valid step");
  if (trace_.planned_steps > 0 && step >= trace_.planned_steps) {
    return Complain(file, "step " + std::to_string(step) + " is beyond the planned " +
                              std::to_string(trace_.planned_steps));
  }
  for (const auto& [key, value] : record.items()) {
    if (key == "t" || key == "step") continue;
    if (file.watched.empty() && key != "time") file.watched = key;
    const std::optional<double> number = DecodeNumber(value);
    if (!number) {
      Complain(file, "signal '" + key + "' is no number");
      continue;
    }
    Series& series = trace_.series[{NameOf(key), rank}];
    if (series.values.empty() && !Charge(static_cast<std::int64_t>(kSeriesBytes + key.size()))) {
      return GiveUp(file, "too many signals");
    }
    if ((key == "time" && !Add(trace_.time_s[rank], step, *number)) ||
        !Add(series, step, *number)) {
      return GiveUp(file, "too many values");
    }
  }
  const bool has_watched = !file.watched.empty() && record.contains(file.watched);
  if (has_watched) NoteStep(file, step);
  if (file.new_world != 0) BeginWorld(file, step);
  // A step without a time still counts as progress.
  if (!record.contains("time") && !Add(trace_.time_s[rank], step, 0.0)) {
    return GiveUp(file, "too many values");
  }
}

void TraceReader::TakeEvent(File& file, const Json& record, bool is_end) {
  const int rank = file.rank;
  Event event;
  event.name = is_end ? "ended" : TextField(record, "event");
  if (event.name.empty()) return Complain(file, "an event without a name");
  if (static_cast<std::int64_t>(trace_.events.size()) >= limits_.events && rank >= 0) {
    return GiveUp(file, "too many events");
  }
  event.step = IntField(record, "step", -1);
  event.rank = IntField(record, "rank", rank);
  event.time_s = DecodeNumber(record.value("time", Json(0.0))).value_or(0.0);
  if (event.name == "resumed" || event.name == "rolled_back") file.newest_step = -1;
  event.fields = record;
  if (!event.fields.contains("rank") && rank >= 0) event.fields["rank"] = rank;
  if (is_end) {
    trace_.end_why[rank] = TextField(record, "why");
    // The program's own decision: what it has done is the whole run.
    if (trace_.end_why[rank] == "stopped_early" && event.step > 0) {
      trace_.planned_steps = std::min(trace_.planned_steps, event.step);
    }
  }
  const std::int64_t bytes =
      static_cast<std::int64_t>(sizeof(Event) + event.name.size()) + MemoryBytes(event.fields);
  if (rank >= 0 && !Charge(bytes)) return GiveUp(file, "the events are too large");
  trace_.events.push_back(std::move(event));
}

}  // namespace trainwreck
