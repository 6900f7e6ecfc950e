#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "harness/targets/event_file.h"
#include "harness/targets/growing_file.h"
#include "harness/targets/signal_reader.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxStep = 1'000'000'000;

// All event files below a folder: a program begins one with each start, and some write several at a
// time.
class EventFileReader : public SignalReader {
 public:
  EventFileReader(const SourceSpec& source, std::string folder, bool skip_existing,
                  const SignalSink& sink)
      : source_(source), sink_(sink), collector_(sink), folder_(std::move(folder)) {
    for (const auto& [signal, tag] : source.names) signals_[tag] = signal;
    if (skip_existing) FindFiles(/*skip=*/true);
  }

  void Poll(bool last) override {
    FindFiles(/*skip=*/false);
    for (auto& [path, file] : files_) Read(path, *file, last);
    if (last) collector_.Flush();
  }

 private:
  struct File {
    GrowingFile growing;
    RecordSplitter records;
    bool is_broken = false;
    File(const std::string& path, bool skip) : growing(path, skip) {}
  };

  void FindFiles(bool skip) {
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder_, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string path = entry->path().string();
      if (entry->path().filename().string().find("tfevents") == std::string::npos) continue;
      if (!files_.contains(path)) files_[path] = std::make_unique<File>(path, skip);
    }
  }

  void Read(const std::string& path, File& file, bool last) {
    std::string bytes;
    bool begun_anew = false;
    while (!file.is_broken && file.growing.Read(bytes, begun_anew)) {
      if (begun_anew) file.records = RecordSplitter();
      file.records.Append(bytes);
      bytes.clear();
      while (const std::optional<std::string> record = file.records.Next()) Take(path, *record);
      if (!file.records.error().empty()) {
        file.is_broken = true;
        sink_.unreadable(path, "", file.records.error());
      }
      if (!last) break;
    }
  }

  void Take(const std::string& path, const std::string& record) {
    std::vector<ScalarEvent> scalars;
    if (!ParseEvent(record, scalars)) sink_.unreadable(path, "", "a record is no event");
    for (const ScalarEvent& scalar : scalars) {
      const auto signal = signals_.find(scalar.tag);
      if (signal == signals_.end()) continue;
      if (scalar.step < source_.first_step || scalar.step >= kMaxStep) {
        sink_.unreadable(path, std::to_string(scalar.step),
                         "no step, counted from " + std::to_string(source_.first_step));
        continue;
      }
      collector_.Add(static_cast<int>(scalar.step) - source_.first_step, signal->second,
                     scalar.value, scalar.wall_time);
    }
  }

  const SourceSpec& source_;
  const SignalSink& sink_;
  StepCollector collector_;
  std::string folder_;
  std::map<std::string, std::string> signals_;          // by tag
  std::map<std::string, std::unique_ptr<File>> files_;  // by path, which has the time in it
};

}  // namespace

std::unique_ptr<SignalReader> MakeEventFileReader(const SourceSpec& source,
                                                  const std::string& folder, bool skip_existing,
                                                  const SignalSink& sink) {
  return std::make_unique<EventFileReader>(source, folder, skip_existing, sink);
}

}  // namespace trainwreck
