#include "harness/protocol/trace_reader.h"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include "harness/protocol/parse_json.h"
#include "harness/protocol/trace_memory.h"

namespace trainwreck {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kMaxProblems = 8;
constexpr std::int64_t kPollBytes =
    8 << 20;  // of a file at once: a flood must not hold up the caller
constexpr std::size_t kChunkBytes = 1 << 16;
constexpr int kMaxStep = 100'000'000;  // a record beyond it is garbage, not a reason to allocate
constexpr std::size_t kSeriesBytes = 160;  // of a signal without its name and its values
constexpr std::int64_t kValueBytes = sizeof(double) + sizeof(std::uint8_t);
constexpr std::size_t kMostColumns = 4096;

int IntOf(double value, int fallback) {
  return value >= -1 && value <= kMaxStep ? static_cast<int>(value) : fallback;
}

int IntField(const Json& record, const char* key, int fallback) {
  auto found = record.find(key);
  if (found == record.end() || !found->is_number()) return fallback;
  return IntOf(found->get<double>(), fallback);
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
  if (line.find("NaN") == line.npos && line.find("Infinity") == line.npos) return result;
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
  if (IsNestedTooDeep(line)) return Json(Json::value_t::discarded);
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

// A member of a record that holds no lists and objects.
struct Member {
  enum class Kind { kNumber, kBoolean, kText };
  std::string_view key;
  Kind kind = Kind::kNumber;
  double number = 0;  // of a boolean, too
  std::string_view text;

  // As DecodeNumber of json.h.
  std::optional<double> Number() const {
    if (kind != Kind::kText) return number;
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    return std::nullopt;
  }
  int Int(int fallback) const { return kind == Kind::kNumber ? IntOf(number, fallback) : fallback; }
  std::string Text() const { return kind == Kind::kText ? std::string(text) : ""; }
};

// The text of a string in which nothing is escaped.
bool PlainText(ondemand::raw_json_string raw, const char* end, std::string_view& text) {
  const char* begin = raw.raw();
  const void* quote = std::memchr(begin, '"', static_cast<std::size_t>(end - begin));
  if (quote == nullptr) return false;
  text = {begin, static_cast<std::size_t>(static_cast<const char*>(quote) - begin)};
  return text.find('\\') == text.npos;
}

bool ReadMember(ondemand::field field, const char* end, Member& member) {
  if (!PlainText(field.key(), end, member.key)) return false;
  ondemand::json_type type;
  if (field.value().type().get(type) != simdjson::SUCCESS) return false;
  if (type == ondemand::json_type::number) {
    member.kind = Member::Kind::kNumber;
    // The other reader takes -0 for an integer, which has no sign.
    return field.value().get_double().get(member.number) == simdjson::SUCCESS &&
           !(member.number == 0 && std::signbit(member.number));
  }
  if (type == ondemand::json_type::string) {
    member.kind = Member::Kind::kText;
    ondemand::raw_json_string raw;
    return field.value().get_raw_json_string().get(raw) == simdjson::SUCCESS &&
           PlainText(raw, end, member.text);
  }
  bool truth = false;
  if (type != ondemand::json_type::boolean ||
      field.value().get_bool().get(truth) != simdjson::SUCCESS) {
    return false;
  }
  member.kind = Member::Kind::kBoolean;
  member.number = truth ? 1.0 : 0.0;
  return true;
}

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// A signal of a file that has been seen before.
struct Column {
  std::string_view name;  // in the trace's map
  Series* series = nullptr;
  std::size_t next = 0;  // the column that came after it the last time
};

constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

}  // namespace

struct TraceReader::File {
  std::string name;
  int rank = -1;  // -1: the launcher's
  Descriptor fd;
  std::int64_t offset = 0;
  int line = 0;
  bool broken = false;           // over a limit: nothing more is read
  std::string tail;              // of an unfinished line
  std::int64_t start_bytes = 0;  // what its last start takes in memory
  // A step whose number was there before, told once: of the first signal of the file, since its
  // last start or return to an earlier step.
  std::string watched;
  const Series* watched_series = nullptr;
  int newest_step = -1;
  bool has_repeats = false;
  // Its signals, so that a name that comes where it was the last time is not searched for.
  std::vector<Column> columns;
  std::unordered_map<std::string_view, std::size_t> column_of;
  std::size_t first_column = 0;
  std::size_t column = kNoColumn;  // of the member before, in the record at hand

  // Whether a record with the watched signal repeats a step. Several records of one step are no
  // repetition: they may hold different signals.
  bool Repeats(int step) {
    if (has_repeats) return false;
    has_repeats = step <= newest_step;
    newest_step = std::max(newest_step, step);
    return has_repeats;
  }

  bool KnowsWatched(const RunTrace& trace) {
    if (watched_series == nullptr && !watched.empty()) watched_series = trace.Find(watched, rank);
    return watched_series != nullptr;
  }

  // Null when the trace has no such signal.
  Series* SeriesOf(std::string_view key, RunTrace& trace) {
    const std::size_t hint = column == kNoColumn ? first_column : columns[column].next;
    if (hint < columns.size() && columns[hint].name == key) {
      column = hint;
      return columns[hint].series;
    }
    auto known = column_of.find(key);
    if (known == column_of.end()) {
      auto found = trace.series.find({std::string(key), rank});
      if (found == trace.series.end()) return nullptr;
      if (columns.size() == kMostColumns) return &found->second;
      known = column_of.emplace(found->first.first, columns.size()).first;
      columns.push_back({found->first.first, &found->second});
    }
    (column == kNoColumn ? first_column : columns[column].next) = known->second;
    column = known->second;
    return columns[column].series;
  }

  void ForgetColumns() {
    columns.clear();
    column_of.clear();
    watched_series = nullptr;
  }

  // The unfinished line with its end, followed by what simdjson may read.
  std::string_view Completed(std::string_view end) {
    tail.append(end);
    tail.reserve(tail.size() + simdjson::SIMDJSON_PADDING);
    return tail;
  }
};

struct TraceReader::Scratch {
  std::string chunk = std::string(kChunkBytes + simdjson::SIMDJSON_PADDING, '\0');
  ondemand::parser parser;
  std::string plain;            // the line at hand, without bare numbers
  std::vector<Member> members;  // of the record at hand
  const Member* step = nullptr;
  std::vector<std::pair<Series*, double>> values;

  // False where the line is to be read by the other reader: it is damaged, has bare numbers, lists,
  // escapes, or a key twice that must be there once. `line` is followed by some bytes that are
  // there to be read.
  bool ReadFlat(std::string_view line, std::string_view& type) {
    members.clear();
    step = nullptr;
    type = "";
    ondemand::document document;
    ondemand::object object;
    const simdjson::padded_string_view padded(line, line.size() + simdjson::SIMDJSON_PADDING);
    if (parser.iterate(padded).get(document) != simdjson::SUCCESS ||
        document.get_object().get(object) != simdjson::SUCCESS) {
      return false;
    }
    for (auto next : object) {
      ondemand::field field;
      if (std::move(next).get(field) != simdjson::SUCCESS) return false;
      Member& member = members.emplace_back();
      if (!ReadMember(field, line.data() + line.size(), member)) return false;
      if (member.key == "t") type = member.kind == Member::Kind::kText ? member.text : "";
    }
    if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) return false;
    for (const Member& member : members) {
      if (member.key == "step") step = &member;
    }
    return true;
  }
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
  file.fd =
      Descriptor(open((folder_ + "/" + file.name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd.get() < 0) return false;
  struct stat status;
  if (fstat(file.fd.get(), &status) == 0 && S_ISREG(status.st_mode)) return true;
  problems_.push_back(file.name + ": not a regular file");
  trace_.lost.insert(file.rank);
  file.broken = true;
  return false;
}

bool TraceReader::Poll(bool last) {
  bool any = false;
  for (File& file : files_) {
    if (!Open(file)) continue;
    ssize_t got;
    const int lines = file.line;
    const std::int64_t enough = file.offset + kPollBytes;
    while (!file.broken && (last || file.offset < enough) &&
           (got = pread(file.fd.get(), scratch_->chunk.data(), kChunkBytes, file.offset)) > 0) {
      file.offset += got;
      bytes_ += got;
      TakeChunk(file, static_cast<std::size_t>(got));
    }
    any = any || file.line > lines;
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

// What a killed process left of its last line, or a last line that its writer did not end.
void TraceReader::TakeTail(File& file) {
  if (file.tail.find_first_not_of(kSpaces) == std::string::npos) return;
  if (ParseRecord(file.tail).is_object()) {
    ++file.line;
    Take(file, file.Completed(""));
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
    file.tail.clear();
    trace_.lost.insert(file.rank);
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
  if (!scratch_->ReadFlat(line, type)) {
    std::string& plain = scratch_->plain;
    plain = WithoutBareNumbers(line);
    if (plain.empty()) return false;
    plain.reserve(plain.size() + simdjson::SIMDJSON_PADDING);
    if (!scratch_->ReadFlat(plain, type)) return false;
  }
  if (type == "step") return TakeFlatStep(file);
  if (type != "collective") return false;
  TakeFlatCollective(file, line);
  return true;
}

bool TraceReader::TakeFlatStep(File& file) {
  const int step = scratch_->step == nullptr ? -1 : scratch_->step->Int(-1);
  if (step < 0 || (trace_.planned_steps > 0 && step >= trace_.planned_steps)) return false;
  if (!file.KnowsWatched(trace_)) return false;
  auto& values = scratch_->values;
  values.clear();
  file.column = kNoColumn;
  bool has_watched = false;
  const double* time = nullptr;
  for (Member& member : scratch_->members) {
    if (member.key == "t" || member.key == "step") continue;
    const std::optional<double> number = member.Number();
    Series* series = number ? file.SeriesOf(member.key, trace_) : nullptr;
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
  if (fits && has_watched && file.Repeats(step)) AddRepeat(file, step);
  // A step without a time still counts as progress.
  if (fits && time == nullptr) fits = Add(trace_.time_s[file.rank], step, 0.0);
  if (!fits) GiveUp(file, "too many values");
  return true;
}

void TraceReader::TakeFlatCollective(File& file, std::string_view line) {
  Collective collective;
  for (const Member& member : scratch_->members) {
    if (member.key == "step") collective.step = member.Int(0);
    if (member.key == "call") collective.call = member.Int(0);
    if (member.key == "op") collective.op = member.Text();
    if (member.key == "shape") collective.shape = member.Text();
    if (member.key == "dtype") collective.dtype = member.Text();
  }
  AddCollective(file, std::move(collective), line.size());
}

void TraceReader::AddRepeat(const File& file, int step) {
  trace_.events.push_back({.name = "repeated_step",
                           .step = step,
                           .rank = file.rank,
                           .fields = {{"event", "repeated_step"}, {"step", step}}});
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
  } else {
    Complain(file, "unknown record type '" + type.substr(0, 40) + "'");
  }
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
    Series& series = trace_.series[{key, rank}];
    if (series.values.empty() && !Charge(static_cast<std::int64_t>(kSeriesBytes + key.size()))) {
      return GiveUp(file, "too many signals");
    }
    if ((key == "time" && !Add(trace_.time_s[rank], step, *number)) ||
        !Add(series, step, *number)) {
      return GiveUp(file, "too many values");
    }
  }
  const bool has_watched = !file.watched.empty() && record.contains(file.watched);
  if (has_watched && file.Repeats(step)) AddRepeat(file, step);
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
  if (is_end) trace_.end_why[rank] = TextField(record, "why");
  const std::int64_t bytes =
      static_cast<std::int64_t>(sizeof(Event) + event.name.size()) + MemoryBytes(event.fields);
  if (rank >= 0 && !Charge(bytes)) return GiveUp(file, "the events are too large");
  trace_.events.push_back(std::move(event));
}

}  // namespace trainwreck
