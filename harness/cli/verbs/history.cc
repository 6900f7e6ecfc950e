// trainwreck history, trainwreck baseline: what has been recorded, and which run others are
// compared with.
#include "harness/history/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>
#include <set>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/page_file.h"
#include "harness/history/course.h"
#include "harness/pages/pages.h"
#include "harness/session/recording.h"
#include "harness/session/selection.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct HistoryOptions {
  CommonOptions common;
  std::string file;                // of the history; empty: see HistoryPath
  std::vector<std::string> words;  // a name or a glob, merge FILE..., or costs; empty: runs
  std::string format = "text";
  std::string html;
  int limit = 20;
  std::string before;
};

struct BaselineOptions {
  CommonOptions common;
  std::string file;
  std::string action;  // "set" or "show"
  std::string run = "latest";
  std::string name = "main";
};

constexpr int kSchemaVersion = 1;

std::string CommitText(const RecordSummary& summary) {
  if (summary.commit.empty()) return "-";
  return summary.commit.substr(0, 10) + (summary.is_dirty ? "*" : "");
}

std::string ProgramText(const RecordSummary& summary) {
  return summary.target_digest.empty() ? "-" : summary.target_digest.substr(0, 8);
}

// The one in the middle of those that are known; 0: none is.
double MedianOf(const CaseRecord& record, double TrainingRecord::*measure) {
  std::vector<double> values;
  for (const TrainingRecord& training : record.trainings) {
    if (training.*measure > 0) values.push_back(training.*measure);
  }
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Json Encode(const RecordSummary& summary) {
  return {{"run", summary.id},        {"started_utc", summary.started_utc},
          {"commit", summary.commit}, {"dirty", summary.is_dirty},
          {"target", summary.target}, {"target_digest", summary.target_digest}};
}

Json Encode(const RecordSummary& summary, const CaseRecord& record) {
  Json json = Encode(summary);
  json["case"] = record.name;
  json["scenario_digest"] = record.scenario_digest;
  json["environment"] = record.environment;
  json["fingerprint"] = Fingerprint(record.environment);
  json["verdict"] = ToString(record.verdict);
  json["class"] = record.failure_class.text();
  json["reason"] = record.reason;
  json["trainings"] = Json::array();
  for (const TrainingRecord& training : record.trainings) {
    Json signals = Json::object();
    for (const auto& [name, value] : training.final_signals) signals[name] = EncodeNumber(value);
    json["trainings"].push_back({{"arm", training.arm},
                                 {"seed", training.seed},
                                 {"end", training.end},
                                 {"step_seconds", training.step_seconds},
                                 {"peak_memory_bytes", training.peak_memory_bytes},
                                 {"final_signals", signals}});
  }
  return json;
}

// `next` is where the next page begins; empty: this is the last one.
Json HistoryJson(const char* what, Json list, const std::string& next) {
  Json json = {
      {"schema", "trainwreck/history"}, {"version", kSchemaVersion}, {what, std::move(list)}};
  if (!next.empty()) json["next_before"] = next;
  return json;
}

void PrintNextPage(const std::string& next) {
  if (!next.empty()) std::cout << "# older: --before '" << next << "'\n";
}

void PrintJson(const Json& json) {
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

using ListedCases = std::vector<std::pair<RecordSummary, CaseRecord>>;

// The records of these cases alone, the oldest first.
std::vector<Record> RecordsOf(RunHistory& history, const ListedCases& cases) {
  std::map<std::int64_t, std::set<std::string>> wanted;  // by run
  for (const auto& [run, record] : cases) wanted[run.id].insert(record.name);
  std::vector<Record> records;
  for (const auto& [id, names] : wanted) {
    auto record = history.Load(id);
    if (!record) continue;
    std::erase_if(record->cases, [&, &listed = names](const CaseRecord& one) {
      return !listed.contains(one.name);
    });
    records.push_back(std::move(*record));
  }
  return records;
}

Json CasesJson(RunHistory& history, const ListedCases& cases, const std::string& next) {
  Json list = Json::array();
  for (const auto& [run, record] : cases) list.push_back(Encode(run, record));
  Json json = HistoryJson("cases", std::move(list), next);
  json["courses"] = CoursesOf(RecordsOf(history, cases));
  return json;
}

// As a page names where the next begins: RUN, or RUN:CASE in a list of cases.
std::optional<CasePlace> BeforeOf(const HistoryOptions& options) {
  if (options.before.empty()) return std::nullopt;
  CasePlace place;
  const char* end = options.before.data() + options.before.size();
  const auto [rest, error] = std::from_chars(options.before.data(), end, place.run);
  const bool is_place = error == std::errc() && (rest == end || (*rest == ':' && rest + 1 != end));
  if (!is_place) {
    throw UsageError("--before takes what a list ends with, a run's number or RUN:CASE, not '" +
                     options.before + "'");
  }
  if (rest != end) place.case_name = rest + 1;
  return place;
}

// One row more than was asked for says that there is another page.
template <typename Row>
bool CutToPage(std::vector<Row>& rows, int limit) {
  if (static_cast<int>(rows.size()) <= limit) return false;
  rows.resize(limit);
  return true;
}

int ListRuns(RunHistory& history, const HistoryOptions& options) {
  std::optional<std::int64_t> before;
  if (const auto place = BeforeOf(options)) {
    if (!place->case_name.empty()) throw UsageError("--before: a list of runs has no cases");
    before = place->run;
  }
  std::vector<RecordSummary> runs = history.List(options.limit + 1, before);
  const std::string next =
      CutToPage(runs, options.limit) ? std::to_string(runs.back().id) : std::string();
  if (options.format == "json") {
    Json list = Json::array();
    for (const RecordSummary& run : runs) {
      list.push_back(Encode(run));
      list.back()["counts"] = run.counts;
    }
    PrintJson(HistoryJson("runs", std::move(list), next));
    return kExitPassed;
  }
  std::vector<std::vector<std::string>> rows = {
      {"run", "started", "commit", "target", "program", "verdicts"}};
  for (const RecordSummary& run : runs) {
    std::string counts;
    for (const std::string& verdict : VerdictNames()) {
      auto found = run.counts.find(verdict);
      if (found == run.counts.end()) continue;
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", found->second, verdict);
    }
    rows.push_back({std::to_string(run.id), run.started_utc, CommitText(run), run.target,
                    ProgramText(run), counts});
  }
  PrintTable(std::cout, rows);
  PrintNextPage(next);
  return kExitPassed;
}

int ListCases(RunHistory& history, const HistoryOptions& options) {
  const std::string& scenario = options.words.front();
  auto cases = history.ListCases(scenario, options.limit + 1, BeforeOf(options));
  if (cases.empty() && !options.before.empty()) {
    throw UsageError("the history has no case '" + scenario + "' before " + options.before);
  }
  if (cases.empty()) {
    throw UsageError("the history has no case '" + scenario +
                     "': a name as 'nan/lr-too-high', or a glob as 'nan/*'");
  }
  std::string next;
  if (CutToPage(cases, options.limit)) {
    next = fmt::format("{}:{}", cases.back().first.id, cases.back().second.name);
  }
  if (options.format == "json" || !options.html.empty()) {
    const Json json = CasesJson(history, cases, next);
    if (options.format == "json") {
      PrintJson(json);
      if (!options.html.empty()) WriteWholeFile(options.html, PageOf(json, kVersion));
      return kExitPassed;
    }
    WriteWholeFile(options.html, PageOf(json, kVersion));  // named below the table
  }
  std::vector<std::vector<std::string>> rows = {{"run", "started", "commit", "program",
                                                 "environment", "verdict", "class", "seeds",
                                                 "step ms", "peak MiB", "case"}};
  for (const auto& [run, record] : cases) {
    const double step_seconds = MedianOf(record, &TrainingRecord::step_seconds);
    const double bytes = MedianOf(record, &TrainingRecord::peak_memory_bytes);
    rows.push_back({std::to_string(run.id), run.started_utc, CommitText(run), ProgramText(run),
                    Fingerprint(record.environment), ToString(record.verdict),
                    record.failure_class.empty() ? "-" : record.failure_class.text(),
                    std::to_string(record.seeds()),
                    step_seconds > 0 ? fmt::format("{:.3g}", 1e3 * step_seconds) : "-",
                    bytes > 0 ? fmt::format("{:.1f}", bytes / (1 << 20)) : "-", record.name});
  }
  PrintTable(std::cout, rows);
  PrintNextPage(next);
  if (!options.html.empty()) std::cout << "# report: " << options.html << "\n";
  return kExitPassed;
}

int MergeHistories(const HistoryOptions& options) {
  if (options.words.size() < 2) throw UsageError("merge what? 'trainwreck history merge FILE...'");
  const std::string path = HistoryPath(options.file);
  if (path.empty()) throw UsageError("--history none leaves nothing to merge into");
  try {
    RunHistory history(path, RunHistory::Mode::kWrite);
    for (auto file = options.words.begin() + 1; file != options.words.end(); ++file) {
      std::error_code error;
      if (*file == path || std::filesystem::equivalent(*file, path, error)) {
        throw UsageError("cannot merge " + path + " into itself");
      }
      RunHistory other(*file, RunHistory::Mode::kRead);
      const MergeCounts counts = history.MergeFrom(other);
      std::cout << *file << ": " << counts.added << (counts.added == 1 ? " run" : " runs")
                << " added, " << counts.known << " known\n";
      for (const std::string& name : counts.baselines) {
        std::cout << "baseline " << name << " added\n";
      }
      for (const std::string& name : counts.left_out) {
        std::cout << "baseline " << name << " left out: it is another run in " << path << "\n";
      }
    }
  } catch (const HistoryError& error) {
    throw ConfigurationError(error.what());
  }
  return kExitPassed;
}

// Of the newest run's target: those of another one say nothing of it.
int PrintCosts(RunHistory& history) {
  const std::vector<RecordSummary> newest = history.List(1);
  const auto seconds =
      newest.empty() ? std::map<std::string, double>() : history.Seconds(newest.front().target);
  if (seconds.empty()) {
    throw UsageError("the history does not say what cases took; a new 'trainwreck run' adds it");
  }
  std::cout << CostsText(seconds);
  return kExitPassed;
}

int HistoryVerb(const HistoryOptions& options) {
  const std::string what = options.words.empty() ? "" : options.words.front();
  if (!options.before.empty() && (what == "merge" || what == "costs")) {
    throw UsageError("--before is for lists: '" + what + "' has no pages");
  }
  if (what == "merge") return MergeHistories(options);
  if (options.words.size() > 1) throw UsageError("one scenario or glob, in quotation marks");
  if (!options.html.empty() && options.words.empty()) {
    throw UsageError("--html: say which SCENARIO, as 'trainwreck history nan/mine --html x.html'");
  }
  CheckPage(options.html);
  const auto opened = OpenHistory(options.file);
  RunHistory& history = *opened;
  if (what == "costs") return PrintCosts(history);
  try {
    return options.words.empty() ? ListRuns(history, options) : ListCases(history, options);
  } catch (const NoSuchRow& error) {
    throw UsageError(std::string("--before: ") + error.what());
  }
}

int BaselineVerb(const BaselineOptions& options) {
  const BaselineOptions& baseline = options;
  const auto opened = OpenHistory(baseline.file);
  RunHistory& history = *opened;
  if (baseline.action == "set") {
    const std::int64_t run = FindRuns(history, baseline.run).front();
    history.SetBaseline(baseline.name, run, UtcNow());
    std::cout << "baseline " << baseline.name << ": run " << run << "\n";
    return kExitPassed;
  }
  std::vector<std::vector<std::string>> rows = {
      {"baseline", "run", "set", "started", "commit", "program"}};
  for (const Baseline& one : history.Baselines()) {
    const auto record = history.Load(one.run);
    RecordSummary summary;
    if (record) {
      summary.started_utc = record->started_utc;
      summary.commit = record->commit;
      summary.is_dirty = record->is_dirty;
      summary.target_digest = record->target_digest;
    }
    rows.push_back({one.name, std::to_string(one.run), one.set_utc, summary.started_utc,
                    CommitText(summary), ProgramText(summary)});
  }
  PrintTable(std::cout, rows);
  return kExitPassed;
}

void DeclareHistory(VerbArguments& arguments, HistoryOptions& options) {
  arguments.Positional("SCENARIO", options.words,
                       "Cases of this name or glob, instead of runs; or: merge FILE...; or: costs");
  arguments.Option("--limit", options.limit, "Newest rows to show [20]", "N").Between(1, 1000000);
  arguments.Option("--before", options.before, "Older rows than this one: what a page ends with",
                   "RUN[:CASE]");
  arguments.Option("--format", options.format, "text or json [text]", "FORMAT")
      .OneOf({"text", "json"});
  DeclarePage(arguments, options.html);
  arguments.HistoryFile(options.file);
  arguments.Common(options.common);
}

const VerbRegistration registration_of_history("history", "List what has been run", kKeeping,
                                               DeclareHistory, HistoryVerb);

void DeclareBaseline(VerbArguments& arguments, BaselineOptions& options) {
  arguments.Positional("ACTION", options.action, "set or show").OneOf({"set", "show"}).Required();
  arguments.Positional("RUN", options.run, "A run's number, latest, or a revision [latest]");
  arguments.Option("--name", options.name, "Of the baseline [main]", "NAME");
  arguments.HistoryFile(options.file);
  arguments.Common(options.common);
}

const VerbRegistration registration_of_baseline("baseline",
                                                "Set or show what others are compared with",
                                                kKeeping, DeclareBaseline, BaselineVerb);

}  // namespace
}  // namespace trainwreck
