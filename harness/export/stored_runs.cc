#include "harness/export/stored_runs.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "harness/process/interruption.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/session/stored_trace.h"
#include "harness/text/clean_text.h"
#include "harness/text/glob.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// The nearest folder, here or above, that `run` wrote to; else the folder itself.
fs::path InvocationOf(const fs::path& folder) {
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    if (fs::is_regular_file(at / "target.json")) return at;
  }
  return folder;
}

std::vector<std::string> FoldersOfRuns(const fs::path& folder) {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& at) {
    if (fs::is_regular_file(at / "run.json") || fs::is_regular_file(at / "rank0.jsonl")) {
      folders.push_back(at.string());
    }
  };
  add(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) add(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Without verdicts the signals are still there.
StoredReport ReportOf(const fs::path& root) {
  const fs::path file = root / "verdicts.json";
  if (!fs::is_regular_file(file)) return {};
  try {
    return ReadJsonReport(file.string());
  } catch (const std::exception& error) {
    std::cerr << "trainwreck: without verdicts: " << CleanText(error.what()) << "\n";
    return {};
  }
}

}  // namespace

std::pair<std::string_view, std::string_view> SignalAndModule(std::string_view key) {
  const std::size_t brace = key.find('{');
  if (brace == std::string_view::npos || !key.ends_with('}')) return {key, {}};
  return {key.substr(0, brace), key.substr(brace + 1, key.size() - brace - 2)};
}

Json AboutRun(const ExportedRun& run) {
  Json about = {{"run", run.name}};
  if (run.run) {
    about["case"] = run.case_name;
    about["arm"] = run.run->arm;
    about["kind"] = ToString(run.run->kind);
    about["seed"] = run.run->seed;
    about["ranks"] = run.run->ranks;
    about["steps"] = run.run->steps;
    about["recipe"] = run.run->plan.recipe;
    about["faults"] = Json::array();
    for (const PlannedFault& fault : run.run->plan.faults) {
      about["faults"].push_back({{"id", fault.id}, {"fault", fault.fault}, {"with", fault.with}});
    }
    for (const AppliedAmendment& fault : run.run->amendments) {
      about["faults"].push_back(
          {{"id", fault.fault_id}, {"fault", fault.fault}, {"with", {{fault.key, fault.after}}}});
    }
  }
  if (!run.end.empty()) about["end"] = run.end;
  if (!run.started_utc.empty()) about["started"] = run.started_utc;
  if (run.verdict != nullptr) {
    about["verdict"] = ToString(run.verdict->verdict);
    about["class"] = run.verdict->failure_class.text();
    about["title"] = run.verdict->title;
  }
  return about;
}

StoredRuns::StoredRuns(std::string folder, std::vector<std::string> signals)
    : signals_(std::move(signals)) {
  const fs::path here = fs::weakly_canonical(folder);
  root_ = InvocationOf(here).string();
  for (std::string& signal : signals_) signal = StoredSignalName(root_, signal);
  folders_ = FoldersOfRuns(here);
  if (folders_.empty()) {
    throw UsageError("'" + folder + "' holds no runs ('trainwreck run --keep all' keeps them)");
  }
  report_ = ReportOf(root_);
  for (const Verdict& verdict : report_.verdicts) verdicts_[verdict.case_name] = &verdict;
}

bool StoredRuns::Wants(const std::string& key) const {
  const std::string_view signal = SignalAndModule(key).first;
  return signals_.empty() ||
         std::any_of(signals_.begin(), signals_.end(), [&](const std::string& glob) {
           return GlobMatches(glob, key) || GlobMatches(glob, signal);
         });
}

ExportedRun StoredRuns::Load(const std::string& folder) const {
  StoredTrace stored = LoadStoredTrace(folder);
  ExportedRun exported;
  exported.name = fs::path(folder).lexically_relative(root_).string();
  if (exported.name == ".") exported.name = fs::path(folder).filename().string();
  if (stored.run) {
    const Run& run = *stored.run;
    exported.case_name = run.scenario + (run.point.empty() ? "" : "[" + run.point + "]");
    exported.end = stored.end ? ToString(*stored.end) : "";
    if (const auto found = verdicts_.find(exported.case_name); found != verdicts_.end()) {
      exported.verdict = found->second;
    }
  }
  exported.run = std::move(stored.run);
  exported.trace = std::move(stored.trace);
  std::erase_if(exported.trace.series, [&](const auto& one) { return !Wants(one.first.first); });
  exported.started_utc = report_.info.started_utc;
  return exported;
}

int StoredRuns::Visit(const std::function<void(const ExportedRun&)>& visit) const {
  int count = 0;
  for (const std::string& folder : folders_) {
    if (WasInterrupted()) break;
    visit(Load(folder));
    ++count;
  }
  return count;
}

}  // namespace trainwreck
