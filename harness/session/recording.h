// The history as verbs see it: where its file is, adding a finished invocation, finding what a
// person means by a run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/history.h"
#include "harness/judge/verdict.h"
#include "harness/report/report.h"

namespace trainwreck {

inline constexpr const char* kHistoryFile = ".trainwreck/history.db";

// --history, else $TRAINWRECK_HISTORY, else .trainwreck/history.db; empty: none is wanted.
std::string HistoryPath(const std::string& option);

// Before anything is run: a history that was asked for must be usable. Throws ConfigurationError.
void CheckHistory(const std::string& option);

// Adds the invocation; says where on standard output. A failure is a warning: it takes nothing from
// the verdicts.
void AddToHistory(const std::string& option, const std::vector<Verdict>& verdicts,
                  const RunInfo& info);

// For reading. Throws ConfigurationError.
std::unique_ptr<RunHistory> OpenHistory(const std::string& option);
// For what is only nice to have: null where there is none that can be read.
std::unique_ptr<RunHistory> FindHistory(const std::string& option);

// To the run that they are of; a failure is a warning. A side that is no run gets nothing.
void AddSeedsToHistory(const std::string& option, std::int64_t run, const Record& more);

// The runs that `word` names, the newest first: "latest", a run's number, "baseline" or
// "baseline:NAME", or a revision of this repository (its runs without uncommitted changes). Throws
// UsageError.
std::vector<std::int64_t> FindRuns(RunHistory& history, const std::string& word);

// A side of a comparison: a verdicts.json, a folder that has one, an invocation's name under
// .trainwreck/runs, or runs of the history as FindRuns knows them. Throws UsageError and
// ConfigurationError.
Record LoadSide(const std::string& word, const std::string& history_option);

}  // namespace trainwreck
