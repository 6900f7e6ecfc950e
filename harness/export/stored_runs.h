// The stored runs of an invocation, one after the other, for programs that read tables of signals.
// One trace is in memory at a time, however many there are.
//
//   const StoredRuns runs(FindOutputFolder("latest"), {"loss", "update_norm*"});
//   runs.Visit([&](const ExportedRun& run) { csv.Add(run); });
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/plan/run.h"
#include "harness/protocol/json.h"
#include "harness/protocol/run_trace.h"
#include "harness/report/report.h"

namespace trainwreck {

// Of a run that `run` did not store, only name and trace are known.
struct ExportedRun {
  std::string name;       // its folder in the invocation's: "nan/mine/fault/0"
  std::string case_name;  // "nan/lr-too-high[sgd]"
  std::optional<Run> run;
  std::string end;                   // a word of RunEnd; empty: not known
  RunTrace trace;                    // with the wanted signals alone
  const Verdict* verdict = nullptr;  // of its case; null: not stored
  std::string started_utc;           // of the invocation; may be empty
};

class StoredRuns {
 public:
  // `folder` is that of an invocation, a part of it, or any folder with traces. `signals` are globs
  // of names with or without their module; empty: all signals. Throws UsageError where there is no
  // trace.
  StoredRuns(std::string folder, std::vector<std::string> signals);

  // In the order of names; returns the number of runs. What is wrong with a trace goes to stderr.
  // Throws ConfigurationError where a run.json cannot be read. Ends early when the user interrupts.
  int Visit(const std::function<void(const ExportedRun&)>& visit) const;

 private:
  bool Wants(const std::string& key) const;
  ExportedRun Load(const std::string& folder) const;

  std::string root_;  // of the invocation
  std::vector<std::string> signals_;
  std::vector<std::string> folders_;                // of the runs
  StoredReport report_;                             // empty where there is none
  std::map<std::string, const Verdict*> verdicts_;  // by case
};

// What is known of a run beside its trace: `run`, `case`, `arm`, `kind`, `seed`, `ranks`, `steps`,
// `recipe`, `faults`, `end`, `started`, `verdict`, `class`, `title`. What is not known is missing.
Json AboutRun(const ExportedRun& run);

// "update_norm{head.weight}" as "update_norm" and "head.weight".
std::pair<std::string_view, std::string_view> SignalAndModule(std::string_view key);

}  // namespace trainwreck
