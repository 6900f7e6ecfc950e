// trainwreck merge: the reports of shards as those of one invocation.
#include "harness/cli/verbs/merge.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <set>

#include "harness/cli/verb.h"
#include "harness/cli/verbs/console_options.h"
#include "harness/cli/verbs/run.h"
#include "harness/picture/files.h"
#include "harness/report/console.h"
#include "harness/report/report.h"
#include "harness/session/recording.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

struct Shard {
  std::string folder;
  StoredReport report;
  RunOptions options;
};

Shard ReadShard(const std::string& folder) {
  Shard shard{.folder = folder, .report = {}, .options = {}};
  const std::string file = folder + "/verdicts.json";
  if (!fs::is_regular_file(file)) {
    throw UsageError("'" + folder + "' is no finished invocation: there is no " + file);
  }
  try {
    shard.report = ReadJsonReport(file);
    ReadPictures(folder + "/" + kPicturesFile, shard.report.verdicts);
  } catch (const std::exception& error) {
    throw ConfigurationError(error.what());
  }
  std::vector<std::string> words = SplitShellWords(shard.report.info.command_line);
  const bool is_run = words.size() > 1 && words[1] == "run";
  if (is_run) words.erase(words.begin(), words.begin() + 2);
  if (!is_run || !ReadOptions(words, [&](VerbArguments& arguments) {
        DeclareRun(arguments, shard.options);
      })) {
    throw UsageError("'" + folder + "' is no shard of 'trainwreck run': it was made by '" +
                     shard.report.info.command_line + "'");
  }
  return shard;
}

// What all shards of one invocation have in common, by its name for people.
std::map<std::string, std::string> InCommonOf(const Shard& shard) {
  const RunInfo& info = shard.report.info;
  const RunOptions& run = shard.options;
  const SelectionOptions& selection = run.selection;
  std::map<std::string, std::string> common = {
      {"version of trainwreck", info.version},
      {"commit", info.commit + (info.is_dirty ? " with changes" : "")},
      {"target", info.target},
      {"number of shards", std::to_string(selection.shard_count)},
      {"selection", Join(selection.paths, " ") + " -k '" + selection.keyword + "' -t '" +
                        selection.tag + "' --point " + Join(run.points, " ") +
                        (selection.shard_costs.empty() ? "" : " with --shard-costs")},
      {"digest of all selected scenarios", info.selection_digest},
      {"--set", Join(run.set, " ")},
      {"--seeds", std::to_string(run.seeds)},
      {"--full", run.full ? "given" : "not given"},
      {"--repeat", std::to_string(run.repeat)}};
  // A commit says which program it is, even where each shard has built it; another compiler may
  // give other bytes.
  if (info.commit.empty() || info.is_dirty) common["program of the target"] = info.target_digest;
  return common;
}

void RefuseDifferent(const std::vector<Shard>& shards) {
  const std::map<std::string, std::string> first = InCommonOf(shards.front());
  std::map<int, std::string> folder_of;  // by shard
  for (const Shard& shard : shards) {
    for (const auto& [what, value] : InCommonOf(shard)) {
      if (value == first.at(what)) continue;
      throw UsageError("these are not shards of one invocation: the " + what + " is '" +
                       first.at(what) + "' in " + shards.front().folder + " and '" + value +
                       "' in " + shard.folder);
    }
    const auto [known, is_new] =
        folder_of.emplace(shard.options.selection.shard_index, shard.folder);
    if (!is_new) {
      throw UsageError("shard " + std::to_string(known->first) + " is there twice: in " +
                       known->second + " and in " + shard.folder);
    }
  }
}

// Shards that were split otherwise, by other costs for example.
void RefuseCasesOfTwo(const std::vector<Shard>& shards) {
  std::map<std::string, std::string> folder_of;
  for (const Shard& shard : shards) {
    for (const Verdict& verdict : shard.report.verdicts) {
      const auto [known, is_new] = folder_of.emplace(verdict.case_name, shard.folder);
      if (is_new || known->second == shard.folder) continue;
      throw UsageError("these are not shards of one split: " + verdict.case_name + " is in " +
                       known->second + " and in " + shard.folder);
    }
  }
}

// The names of all selected cases; none if a shard of an earlier version does not say them, or if
// those are missing that do.
std::vector<std::string> SelectedCases(const std::vector<Shard>& shards) {
  for (const Shard& shard : shards) {
    if (!shard.report.info.selected_cases.empty()) return shard.report.info.selected_cases;
  }
  return {};
}

// Selected cases without a verdict, by name.
std::vector<std::string> MissingCases(const std::vector<Shard>& shards) {
  std::set<std::string> judged;
  for (const Shard& shard : shards) {
    for (const Verdict& verdict : shard.report.verdicts) judged.insert(verdict.case_name);
  }
  std::vector<std::string> missing;
  for (const std::string& name : SelectedCases(shards)) {
    if (!judged.contains(name)) missing.push_back(name);
  }
  return missing;
}

// "a, b and 7 others"
std::string SomeOf(std::vector<std::string> names) {
  constexpr std::size_t kMost = 20;
  if (names.size() <= kMost + 1) return Join(names);
  const std::size_t others = names.size() - kMost;
  names.resize(kMost);
  return Join(names) + " and " + std::to_string(others) + " others";
}

// And when they have no case of two, some may be nobody's.
void RefuseCasesOfNone(const StoredReport& merged, const std::vector<std::string>& missing) {
  const int judged = static_cast<int>(merged.verdicts.size()) + merged.info.unjudged;
  if (merged.info.selected == 0 || judged == merged.info.selected) return;
  throw UsageError("these are not shards of one split: " + std::to_string(merged.info.selected) +
                   " cases were selected, and together they have " + std::to_string(judged) +
                   (missing.empty() ? "" : ", without " + SomeOf(missing)) +
                   "; were they given the same --shard-costs?");
}

// "2/4, 3/4 (TIMEOUT on n1)"; empty: all are there. One that was cut off is there in part.
std::string MissingShards(const std::vector<Shard>& shards, const std::map<int, std::string>& why) {
  std::map<int, const Shard*> there;
  for (const Shard& shard : shards) there[shard.options.selection.shard_index] = &shard;
  const int count = shards.front().options.selection.shard_count;
  std::vector<std::string> missing;
  for (int index = 1; index <= count; ++index) {
    const auto found = there.find(index);
    const int unjudged = found == there.end() ? 0 : found->second->report.info.unjudged;
    if (found != there.end() && unjudged == 0) continue;
    std::vector<std::string> notes;
    if (unjudged > 0) notes.push_back("cut off, without " + std::to_string(unjudged) + " cases");
    if (const auto reason = why.find(index); reason != why.end()) notes.push_back(reason->second);
    missing.push_back(std::to_string(index) + "/" + std::to_string(count) +
                      (notes.empty() ? "" : " (" + Join(notes, "; ") + ")"));
  }
  return Join(missing);
}

// "a; b": each once.
void AddWord(std::string& words, const std::string& word) {
  if (word.empty() || ("; " + words + "; ").find("; " + word + "; ") != std::string::npos) return;
  words += (words.empty() ? "" : "; ") + word;
}

// The shards ran beside each other: runs and processor time add up, the time is that of the last.
StoredReport MergedOf(std::vector<Shard> shards, const MergeOptions& options) {
  StoredReport merged;
  RunInfo& info = merged.info = shards.front().report.info;
  info.selected_cases = SelectedCases(shards);
  info.command_line = options.common.command_line;
  info.output_dir = options.output;
  info.host = info.devices = "";
  info.runs = info.cores = info.unjudged = 0;
  info.wall_seconds = info.cpu_seconds = 0;
  for (Shard& shard : shards) {
    const RunInfo& one = shard.report.info;
    info.runs += one.runs;
    info.unjudged += one.unjudged;
    info.cores += one.cores;
    info.cpu_seconds += one.cpu_seconds;
    info.wall_seconds = std::max(info.wall_seconds, one.wall_seconds);
    info.started_utc = std::min(info.started_utc, one.started_utc);
    AddWord(info.host, one.host);
    AddWord(info.devices, one.devices);
    for (const auto& [key, value] : one.environment) AddWord(info.environment[key], value);
    std::move(shard.report.verdicts.begin(), shard.report.verdicts.end(),
              std::back_inserter(merged.verdicts));
  }
  std::stable_sort(merged.verdicts.begin(), merged.verdicts.end(),
                   [](const Verdict& a, const Verdict& b) { return a.case_name < b.case_name; });
  return merged;
}

int MergeVerb(const MergeOptions& options) {
  WarnOfSharedHistory(options.history);
  return MergeShards(options, {});
}

void Declare(VerbArguments& arguments, MergeOptions& options) {
  arguments.Positional("DIR", options.folders, "Output folders of the shards").Required();
  arguments.Option("--output", options.output, "Folder for the merged verdicts.json", "DIR")
      .Required();
  arguments.Results(options.require, options.max_skips, options.reports, options.html);
  arguments.HistoryFile(options.history);
  arguments.Common(options.common);
}

const VerbRegistration registration("merge", "Merge the reports of shards into one", kStored,
                                    Declare, MergeVerb, /*prints_colors=*/true);

}  // namespace

int MergeShards(const MergeOptions& options, const std::map<int, std::string>& why) {
  std::vector<Shard> shards;
  for (const std::string& folder : options.folders) shards.push_back(ReadShard(folder));
  RefuseDifferent(shards);
  RefuseCasesOfTwo(shards);
  const std::string missing = MissingShards(shards, why);
  const std::vector<std::string> missing_cases = MissingCases(shards);
  const StoredReport merged = MergedOf(std::move(shards), options);
  if (missing.empty()) RefuseCasesOfNone(merged, missing_cases);
  ConsoleReport console(std::cout, ConsoleOptionsOf(options.common));
  console.Begin(merged.info, static_cast<int>(merged.verdicts.size()), merged.info.runs);
  for (const Verdict& verdict : merged.verdicts) console.Finished(verdict);
  std::vector<ReportRequest> requests = {{"json", options.output + "/verdicts.json"}};
  if (options.html) requests.push_back({"html", options.output + "/report.html"});
  requests.insert(requests.end(), options.reports.begin(), options.reports.end());
  std::vector<std::string> files;
  for (const ReportRequest& request : requests) {
    WriteReport(*FindReportFormat(request.kind), request.path, merged.verdicts, merged.info);
    files.push_back(request.path);
  }
  WriteWholeFile(options.output + "/" + kPicturesFile, PicturesText(merged.verdicts));
  AppendStepSummary(merged.verdicts, merged.info);
  console.End(merged.verdicts, merged.info, files);
  std::cout << std::flush;
  if (missing.empty()) {
    AddToHistory(options.history, merged.verdicts, merged.info);
  } else {
    std::cerr << "trainwreck: SHARDS ARE MISSING: " << missing
              << "; nothing is known of their cases, and the history gets no part of a run\n";
    if (!missing_cases.empty()) {
      std::cerr << "trainwreck: cases without a verdict: " << SomeOf(missing_cases) << "\n";
    }
  }
  const int status = GatedStatus({options.require, options.max_skips}, merged.verdicts);
  return status == kExitPassed && !missing.empty() ? static_cast<int>(kExitInconclusive) : status;
}

}  // namespace trainwreck
