// trainwreck compare: two sides of the history, or two verdicts.json, against each other.
#include <filesystem>
#include <iostream>

#include "harness/cli/recording.h"
#include "harness/cli/session.h"
#include "harness/cli/storage.h"
#include "harness/cli/verbs.h"
#include "harness/history/comparison.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// How far back a run is looked for that tells code from environment.
constexpr int kLookBack = 200;

// The history, opened when something is looked for in it.
class LazyHistory {
 public:
  explicit LazyHistory(std::string option) : option_(std::move(option)) {}
  History& Get() {
    if (!history_) history_ = OpenHistory(option_);
    return *history_;
  }
  // For what is only nice to have.
  History* GetIfThere() {
    const std::string path = HistoryPath(option_);
    if (path.empty() || !fs::is_regular_file(path)) return nullptr;
    return &Get();
  }

 private:
  std::string option_;
  std::unique_ptr<History> history_;
};

// A file, or a folder with one in it; empty when `word` is neither.
std::string VerdictsFile(const std::string& word) {
  std::error_code error;
  if (fs::is_regular_file(word, error)) return word;
  for (const std::string& folder : {word, std::string(kRunsFolder) + "/" + word}) {
    if (word != "latest" && fs::is_regular_file(folder + "/verdicts.json", error)) {
      return folder + "/verdicts.json";
    }
  }
  return "";
}

Record LoadSide(const std::string& word, LazyHistory& history) {
  if (const std::string file = VerdictsFile(word); !file.empty()) {
    try {
      const StoredReport stored = ReadJsonReport(file);
      return Combine({MakeRecord(stored.verdicts, stored.info)});
    } catch (const std::exception& error) {
      throw ConfigurationError(error.what());
    }
  }
  std::vector<Record> records;
  for (std::int64_t id : FindRuns(history.Get(), word)) {
    if (auto record = history.Get().Load(id)) records.push_back(std::move(*record));
  }
  if (records.empty()) throw UsageError("the history has lost what '" + word + "' names");
  return Combine(records);
}

bool HasSameEnvironment(const Record& x, const Record& y) {
  bool in_common = false;
  for (const CaseRecord& one : x.cases) {
    for (const CaseRecord& other : y.cases) {
      if (one.name != other.name) continue;
      in_common = true;
      if (one.environment != other.environment) return false;
    }
  }
  return in_common;
}

// Where both code and environment differ, a run that differs from B in one of them tells more.
std::string HintFor(const Comparison& comparison, const std::string& b, LazyHistory& lazy) {
  if (comparison.environment.empty() || comparison.same_code) return "";
  const std::string advice =
      "to tell code from environment, run A's commit in B's environment and compare that";
  History* history = lazy.GetIfThere();
  if (history == nullptr || comparison.a.target_digest.empty()) return advice;
  for (const RecordSummary& run : history->List(kLookBack)) {
    if (run.id == comparison.a.id || run.target_digest != comparison.a.target_digest) continue;
    const auto record = history->Load(run.id);
    if (!record || !HasSameEnvironment(*record, comparison.b)) continue;
    return "run " + std::to_string(run.id) +
           " has A's program in B's environment: trainwreck compare " + std::to_string(run.id) +
           " " + b;
  }
  return advice;
}

void WriteReports(const CompareVerbOptions& options, const Comparison& comparison) {
  for (const ReportRequest& request : options.reports) {
    WriteWholeFile(
        request.path,
        request.kind == "json"
            ? ToJson(comparison).dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
            : MarkdownText(comparison));
    std::cout << "# report: " << request.path << "\n";
  }
}

}  // namespace

int CompareVerb(const Options& options) {
  const CompareVerbOptions& compare = options.compare;
  for (const ReportRequest& request : compare.reports) {
    if (request.kind == "junit") {
      throw UsageError("--report: compare writes json and markdown, no junit");
    }
  }
  LazyHistory history(compare.file);
  Record a = LoadSide(compare.a, history);
  Record b = LoadSide(compare.b, history);
  CompareOptions how;
  how.shift.confidence = compare.confidence;
  how.shift.relevant_shift = compare.shift;
  how.max_slowdown = compare.max_slowdown;
  how.max_memory = compare.max_memory;
  Comparison comparison = Compare(std::move(a), std::move(b), how);
  try {
    comparison.hint = HintFor(comparison, compare.b, history);
  } catch (const std::runtime_error&) {  // a damaged history: a hint is only nice to have
  }
  std::cout << ConsoleText(comparison, options.common.verbose);
  WriteReports(compare, comparison);
  return ExitCode(comparison);
}

}  // namespace trainwreck
