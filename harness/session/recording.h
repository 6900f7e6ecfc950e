// The history for verbs: finds its file, adds a finished invocation, finds the run that the user
// names.
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

// The history's file or address: --history, else $TRAINWRECK_HISTORY, else .trainwreck/history.db.
// Empty: no history is wanted.
std::string HistoryPath(const std::string& option);

// On standard error, where the history is a file on a file system that several machines share.
void WarnOfSharedHistory(const std::string& option);

// The name of a file system that several machines share, by statfs's number; empty: another one.
// A history on it is safe with writers of one machine alone.
std::string NameOfSharedFileSystem(std::int64_t type);

// Checks, before anything is run, that a history which the user named is usable, and warns of one
// that is on a shared file system. Throws ConfigurationError.
void CheckHistory(const std::string& option);

// Adds the invocation and prints its place on standard output. A failure is only a warning: it does
// not change the verdicts.
void AddToHistory(const std::string& option, const std::vector<Verdict>& verdicts,
                  const RunInfo& info);

// Opens the history for reading. Throws ConfigurationError.
std::unique_ptr<RunHistory> OpenHistory(const std::string& option);
// Opens the history for optional information: null where there is none that can be read.
std::unique_ptr<RunHistory> FindHistory(const std::string& option);

// Adds seeds to their run; a failure is only a warning. Does nothing where a side is no run.
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
