#include "harness/targets/signal_reader.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "harness/protocol/json.h"
#include "harness/protocol/parse_json.h"
#include "harness/targets/globs.h"
#include "harness/targets/growing_file.h"

namespace trainwreck {
namespace {

constexpr std::size_t kLineBytes = 1 << 20;
constexpr double kMaxStep = 1e9;

// Lines of a growing file, or of several that are one.
class LineReader : public SignalReader {
 public:
  LineReader(const SourceSpec& source, const std::vector<std::string>& paths, bool skip_existing,
             const SignalSink& sink)
      : source_(source), sink_(sink), collector_(sink) {
    for (const std::string& path : paths) files_.push_back({GrowingFile(path, skip_existing), ""});
  }

  void Poll(bool last) override {
    for (File& file : files_) {
      bool begun_anew = false;
      std::string bytes;
      current_ = &file;
      const auto zeros = last ? GrowingFile::Zeros::kAreAwaited : GrowingFile::Zeros::kAreLeft;
      while (file.file.Read(bytes, begun_anew, zeros)) {
        if (begun_anew) {
          file.tail.clear();
          BeginAnew();
        }
        Split(bytes, file.tail);
        bytes.clear();
        if (!last) break;
      }
      if (last && !file.tail.empty()) Take(file.tail);
      if (last) file.tail.clear();
    }
    if (last) collector_.Flush();
  }

 protected:
  virtual void Take(const std::string& line) = 0;
  virtual void BeginAnew() {}

  void Complain(const std::string& text, const std::string& why) {
    sink_.unreadable(current_->file.path(), text.substr(0, 200), why);
  }

  // A step as the program counts; empty, with a complaint, when it is none.
  std::optional<int> StepFrom(const std::string& text) {
    const std::optional<double> number = NumberFromText(text);
    if (number && *number >= source_.first_step && *number < kMaxStep) {
      return static_cast<int>(*number) - source_.first_step;
    }
    Complain(text, "no step, counted from " + std::to_string(source_.first_step));
    return std::nullopt;
  }

  void Value(std::optional<int> step, const std::string& signal, const std::string& text) {
    if (const std::optional<double> number = NumberFromText(text)) {
      collector_.Add(step, signal, *number);
    } else {
      Complain(text, "signal '" + signal + "' is no number");
    }
  }

  const SourceSpec& source_;
  const SignalSink& sink_;
  StepCollector collector_;

 private:
  // Progress bars end their lines with a carriage return.
  void Split(const std::string& bytes, std::string& tail) {
    std::size_t begin = 0;
    for (std::size_t end; (end = bytes.find_first_of("\n\r", begin)) != std::string::npos;
         begin = end + 1) {
      tail.append(bytes, begin, end - begin);
      if (tail.size() <= kLineBytes && !tail.empty()) Take(tail);
      tail.clear();
    }
    if (tail.size() <= kLineBytes) tail.append(bytes, begin);
  }

  struct File {
    GrowingFile file;
    std::string tail;  // of an unfinished line
  };
  std::vector<File> files_;
  const File* current_ = nullptr;  // that is read
};

class PatternReader : public LineReader {
 public:
  PatternReader(const SourceSpec& source, const std::vector<std::string>& paths, bool skip_existing,
                const SignalSink& sink)
      : LineReader(source, paths, skip_existing, sink),
        pattern_(source.pattern, RE2::Quiet),
        groups_(1 + pattern_.NumberOfCapturingGroups()) {}

 protected:
  void Take(const std::string& line) override {
    if (!pattern_.Match(line, 0, line.size(), RE2::UNANCHORED, groups_.data(),
                        static_cast<int>(groups_.size()))) {
      return;
    }
    std::optional<int> step;
    if (!source_.step.empty()) {
      const std::optional<std::string> text = Group(source_.step);
      if (!text || !(step = StepFrom(*text))) return;
    }
    for (const auto& [signal, group] : source_.names) {
      if (const std::optional<std::string> text = Group(group)) Value(step, signal, *text);
    }
  }

 private:
  // Empty when the group took no part in the match.
  std::optional<std::string> Group(const std::string& name) const {
    const re2::StringPiece& group = groups_[pattern_.NamedCapturingGroups().at(name)];
    if (group.data() == nullptr) return std::nullopt;
    return std::string(group.data(), group.size());
  }

  RE2 pattern_;
  std::vector<re2::StringPiece> groups_;
};

// Fields in double quotes may hold commas; a quote in them is doubled.
std::vector<std::string> SplitCsv(const std::string& line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == ',' && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

class CsvReader : public LineReader {
 public:
  CsvReader(const SourceSpec& source, const std::vector<std::string>& paths, bool skip_existing,
            const SignalSink& sink)
      : LineReader(source, paths, skip_existing, sink) {
    std::ifstream file(paths.front());
    std::string line;
    // Rows that are appended after a resume go under the header that is there.
    if (skip_existing && std::getline(file, line) && !file.eof()) TakeHeader(SplitCsv(line));
  }

 protected:
  void BeginAnew() override { header_.clear(); }

  void Take(const std::string& line) override {
    std::vector<std::string> fields = SplitCsv(line);
    if (header_.empty()) return TakeHeader(std::move(fields));
    if (fields == header_) return;  // written again after a resume
    std::optional<int> step;
    if (!source_.step.empty()) {
      const std::size_t column = IndexOf(source_.step);
      if (column >= fields.size() || !(step = StepFrom(fields[column]))) return;
    }
    for (const auto& [signal, name] : source_.names) {
      const std::size_t column = IndexOf(name);
      if (column < fields.size() && !fields[column].empty()) Value(step, signal, fields[column]);
    }
  }

 private:
  void TakeHeader(std::vector<std::string> fields) {
    header_ = std::move(fields);
    for (std::string& name : header_) name.erase(0, name.find_first_not_of(" \t\xEF\xBB\xBF"));
    if (!header_.back().empty() && header_.back().back() == '\r') header_.back().pop_back();
    Find(source_.step);
    for (const auto& [signal, column] : source_.names) Find(column);
  }

  std::size_t IndexOf(const std::string& name) const {
    return static_cast<std::size_t>(std::find(header_.begin(), header_.end(), name) -
                                    header_.begin());
  }
  void Find(const std::string& name) {
    if (!name.empty() && IndexOf(name) == header_.size()) Complain(name, "no such column");
  }

  std::vector<std::string> header_;
};

class JsonReader : public LineReader {
 public:
  using LineReader::LineReader;

 protected:
  void Take(const std::string& line) override {
    const Json record = TryParseJson(QuoteNonFinite(line));
    if (!record.is_object()) return Complain(line, "no JSON object");
    std::optional<int> step;
    if (!source_.step.empty()) {
      const Json* value = Find(record, source_.step);
      if (value == nullptr) return;  // a line about something else
      if (!(step = StepFrom(value->dump()))) return;
    }
    for (const auto& [signal, field] : source_.names) {
      const Json* value = Find(record, field);
      if (value == nullptr || value->is_null()) continue;
      Value(step, signal, value->is_string() ? value->get<std::string>() : value->dump());
    }
  }

 private:
  // `train.loss`: a field of that name, or a field in a field.
  static const Json* Find(const Json& object, const std::string& path) {
    if (!object.is_object()) return nullptr;
    if (auto found = object.find(path); found != object.end()) return &*found;
    const std::size_t dot = path.find('.');
    if (dot == std::string::npos) return nullptr;
    const auto outer = object.find(path.substr(0, dot));
    return outer == object.end() ? nullptr : Find(*outer, path.substr(dot + 1));
  }
};

// Files whose names are not known before: version_0/metrics.csv.
class GlobReader : public SignalReader {
 public:
  GlobReader(const SourceSpec& source, std::string pattern, bool skip_existing,
             const SignalSink& sink)
      : source_(source), pattern_(std::move(pattern)), sink_(sink) {
    if (skip_existing) FindFiles(/*skip_existing=*/true);
  }

  void Poll(bool last) override {
    FindFiles(/*skip_existing=*/false);
    for (const auto& [path, reader] : readers_) reader->Poll(last);
  }

 private:
  void FindFiles(bool skip_existing) {
    for (const std::string& path : FindMatches(pattern_)) {
      std::unique_ptr<SignalReader>& reader = readers_[path];
      if (!reader) reader = MakeLineReader(source_, {path}, skip_existing, sink_);
    }
  }

  const SourceSpec& source_;
  const std::string pattern_;
  const SignalSink& sink_;
  std::map<std::string, std::unique_ptr<SignalReader>> readers_;
};

}  // namespace

void StepCollector::Add(std::optional<int> step, const std::string& signal, double value,
                        double wall_time) {
  if (!step) step = current_.values.contains(signal) ? counted_ + 1 : counted_;
  if (*step != current_.step) Flush();
  current_.step = counted_ = *step;
  current_.values[signal] = value;
  current_.wall_time = wall_time;
}

void StepCollector::Flush() {
  if (!current_.values.empty()) sink_.step(current_);
  current_.values.clear();
}

std::unique_ptr<SignalReader> MakeLineReader(const SourceSpec& source,
                                             const std::vector<std::string>& paths,
                                             bool skip_existing, const SignalSink& sink) {
  if (source.kind == SourceKind::kCsv) {
    return std::make_unique<CsvReader>(source, paths, skip_existing, sink);
  }
  if (source.kind == SourceKind::kJsonLines) {
    return std::make_unique<JsonReader>(source, paths, skip_existing, sink);
  }
  return std::make_unique<PatternReader>(source, paths, skip_existing, sink);
}

std::unique_ptr<SignalReader> MakeGlobReader(const SourceSpec& source, const std::string& pattern,
                                             bool skip_existing, const SignalSink& sink) {
  return std::make_unique<GlobReader>(source, pattern, skip_existing, sink);
}

std::optional<double> NumberFromText(std::string text) {
  text.erase(0, text.find_first_not_of(" \t"));
  text.erase(text.find_last_not_of(" \t,;") + 1);  // of a pattern that took too much
  if (text == "true") return 1.0;
  if (text == "false") return 0.0;
  if (text.empty() || text.find_first_of("xX") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' ? std::optional<double>(value) : std::nullopt;
}

std::string QuoteNonFinite(const std::string& json) {
  std::string text;
  bool is_inside = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (is_inside && json[i] == '\\' && i + 1 < json.size()) {
      text += json[i++];
      text += json[i];
      continue;
    }
    if (json[i] == '"') is_inside = !is_inside;
    const char* word = nullptr;
    for (const char* candidate : {"NaN", "Infinity", "-Infinity"}) {
      if (!is_inside && json.compare(i, std::string(candidate).size(), candidate) == 0) {
        word = candidate;
      }
    }
    if (word == nullptr) {
      text += json[i];
    } else {
      text += std::string("\"") + word + "\"";
      i += std::string(word).size() - 1;
    }
  }
  return text;
}

}  // namespace trainwreck
