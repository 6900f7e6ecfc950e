// trainwreck compare: two sides of the history, or two verdicts.json, against each other.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include "harness/bisect/more_seeds.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/run.h"
#include "harness/history/comparison.h"
#include "harness/history/missing_seeds.h"
#include "harness/process/command.h"
#include "harness/session/recording.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct CompareVerbOptions {
  CommonOptions common;
  std::string file;
  std::string a = "baseline";
  std::string b = "latest";
  double confidence = 0.95;
  double shift = 2;
  double max_slowdown = 0;
  double max_memory = 0;
  bool only_common = false;
  bool accept_changes = false;
  int more_seeds = 0;  // so many more seeds at most are run, where they are missing; 0: none
  std::vector<ReportRequest> reports;
};

namespace fs = std::filesystem;

// How far back a run is looked for that tells code from environment.
constexpr int kLookBack = 200;

// The history, opened when something is looked for in it.
class LazyHistory {
 public:
  explicit LazyHistory(std::string option) : option_(std::move(option)) {}
  RunHistory& Get() {
    if (!history_) history_ = OpenHistory(option_);
    return *history_;
  }
  // For what is only nice to have.
  RunHistory* GetIfThere() {
    const std::string path = HistoryPath(option_);
    if (path.empty() || !fs::is_regular_file(path)) return nullptr;
    return &Get();
  }

 private:
  std::string option_;
  std::unique_ptr<RunHistory> history_;
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
  std::string advice =
      "to tell code from environment, run A's commit in B's environment and compare that";
  RunHistory* history = lazy.GetIfThere();
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

struct Sides {
  Record a, b;
};

// What the recorded `trainwreck run` was told; empty: it was no such command.
std::optional<RecordedRun> ReadRecorded(const std::string& line) {
  std::vector<std::string> words = SplitCommandLine(line);
  if (words.size() < 2 || words[1] != "run") return std::nullopt;
  words.erase(words.begin(), words.begin() + 2);
  RunOptions options;
  const bool is_read =
      ReadOptions(words, [&](VerbArguments& arguments) { DeclareRun(arguments, options); });
  if (!is_read) return std::nullopt;
  return RecordedRun{.common = options.common,
                     .paths = options.selection.paths,
                     .points = options.points,
                     .set = options.set,
                     .cores = options.cores,
                     .exec = options.exec,
                     .full = options.full};
}

// Whether any seed was added.
bool AddMissing(const CompareVerbOptions& compare, const std::string& name, const Sides& sides,
                const std::map<std::string, int>& missing, Record& side) {
  const auto list = MissingOf(side, sides.a, sides.b, missing, compare.more_seeds);
  for (const MissingSeeds& one : list) {
    std::cout << "# " << name << ": running seeds " << one.first << " to " << one.end - 1 << " of "
              << one.scenario << "\n"
              << std::flush;
  }
  if (list.empty()) return false;
  const auto recorded = ReadRecorded(side.command_line);
  const MoreSeeds more =
      recorded ? RunMissingSeeds(side, *recorded, list) : MoreSeeds{{}, "its command is not known"};
  for (const Record& record : more.records) {
    if (record.target_digest != side.target_digest) continue;
    AddSeedsToHistory(compare.file, side.id, record);
    side = Combine({side, record});
  }
  if (!more.why.empty()) {
    std::cout << "# " << name << ": no more seeds of it: " << more.why << "\n";
    if (!side.commit.empty()) {
      std::cout << "# build commit " << side.commit.substr(0, 10)
                << (side.is_dirty ? " with its changes" : "")
                << ", and there: " << side.command_line << " --seeds " << list.back().end << "\n";
    }
  }
  return !more.records.empty();
}

CompareOptions OptionsFrom(const CompareVerbOptions& compare) {
  CompareOptions how;
  how.shift.confidence = compare.confidence;
  how.shift.relevant_shift = compare.shift;
  how.max_slowdown = compare.max_slowdown;
  how.max_memory = compare.max_memory;
  how.only_common = compare.only_common;
  how.accept_changes = compare.accept_changes;
  return how;
}

int CompareVerb(const CompareVerbOptions& options) {
  const CompareVerbOptions& compare = options;
  for (const ReportRequest& request : compare.reports) {
    if (request.kind == "junit") {
      throw UsageError("--report: compare writes json and markdown, no junit");
    }
  }
  LazyHistory history(compare.file);
  Sides sides{LoadSide(compare.a, history), LoadSide(compare.b, history)};
  const CompareOptions how = OptionsFrom(compare);
  Comparison comparison = Compare(sides.a, sides.b, how);
  if (const auto missing = SeedsWanted(comparison); compare.more_seeds != 0 && !missing.empty()) {
    try {
      const Sides before = sides;
      const bool more_of_a = AddMissing(compare, "A", before, missing, sides.a);
      const bool more_of_b = AddMissing(compare, "B", before, missing, sides.b);
      if (more_of_a || more_of_b) comparison = Compare(sides.a, sides.b, how);
    } catch (const Interrupted&) {
      return kExitInterrupted;
    }
  }
  try {
    comparison.hint = HintFor(comparison, compare.b, history);
  } catch (const std::runtime_error&) {  // a damaged history: a hint is only nice to have
  }
  if (comparison.hint.empty() && comparison.CountMargins(Answer::kUnknown) > 0) {
    comparison.hint = SeedsHint(comparison);
  }
  std::cout << ConsoleText(comparison, options.common.verbose);
  WriteReports(compare, comparison);
  return ExitCode(comparison);
}

void Declare(VerbArguments& arguments, CompareVerbOptions& options) {
  const std::string kinds = "a run's number, latest, baseline[:NAME], a revision, a file";
  arguments.Positional("A", options.a, "Before: " + kinds + " [baseline]");
  arguments.Positional("B", options.b, "After: the same [latest]");
  arguments.HistoryFile(options.file);
  arguments
      .Option("--confidence", options.confidence,
              "That no margin is called different without being so [0.95]", "P")
      .Between(0.51, 0.9999);
  arguments
      .Option("--shift", options.shift,
              "Smallest shift of a margin that matters, in standard deviations of A's seeds [2]",
              "SIGMA")
      .Between(0.1, 100.0);
  arguments
      .Option("--max-slowdown", options.max_slowdown,
              "A step time that grew by more than this ratio is worse", "RATIO")
      .Between(0.01, 1000.0);
  arguments
      .Option("--max-memory", options.max_memory,
              "A peak memory that grew by more than this ratio is worse", "RATIO")
      .Between(0.01, 1000.0);
  arguments.Flag("--only-common", options.only_common,
                 "Cases that B lacks are not gone: B ran a part of A's cases");
  arguments.Flag("--accept-changes", options.accept_changes,
                 "Exit 0 also when something changed that is not known to be worse");
  arguments.Flag(
      "--more-seeds",
      [&options] {
        if (options.more_seeds == 0) options.more_seeds = -1;  // as many as are asked for
      },
      "Run the seeds that are missing, and compare anew");
  arguments
      .Option("--max-more-seeds", options.more_seeds, "The same, but at most N seeds of each side",
              "N")
      .Between(1, 10000);
  arguments.Reports(options.reports);
  arguments.Common(options.common);
}

const VerbRegistration registration("compare", "Compare two runs, commits or verdicts.json",
                                    kKeeping, Declare, CompareVerb);

}  // namespace
}  // namespace trainwreck
