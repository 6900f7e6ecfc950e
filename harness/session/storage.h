// Folders of an invocation: .trainwreck/runs/<UTC time>/ with `latest`, and what is stored beside
// each run's trace so that it can be judged or run again: run.json (the planned run and how it
// ended), and once for all target.json (the description that its formulas were checked against).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/launch/launcher.h"
#include "harness/plan/run.h"
#include "harness/protocol/description.h"
#include "harness/protocol/json.h"

namespace trainwreck {

inline constexpr const char* kRunsFolder = ".trainwreck/runs";

// Makes the folder: `wanted`, or a new one under .trainwreck/runs named by the UTC time. Two calls
// in one second get two folders. It is this process's until it ends or makes another one: who wants
// the same folder meanwhile is refused. With `is_latest`, `latest` points to the new one. Throws
// ConfigurationError.
std::string MakeOutputFolder(const std::string& wanted, bool is_latest);

// "2026-01-31T12:00:00Z"
std::string UtcNow();

// Writes beside and renames: readers see the old file or the whole new one. Throws
// std::system_error.
void WriteWholeFile(const std::string& path, const std::string& text);
std::string ReadWholeFile(const std::string& path);  // throws std::runtime_error

// Before the work that is to fill it: can this file be written? `option` named it. Makes its
// folder. Throws ConfigurationError.
void CheckWritable(const std::string& path, const std::string& option);

struct StoredRun {
  Run run;
  std::optional<RunEnd> end;  // empty: not known
  std::string detail;
};

Json ToJson(const Run& run);
Run RunFromJson(const Json& json);  // throws std::runtime_error

// Into result.folder. On a full disk, say, it cannot be stored: that is said on standard error,
// once, and takes nothing from the verdicts.
void StoreRun(const Run& run, const RunResult& result);
StoredRun LoadStoredRun(const std::string& folder);  // throws ConfigurationError
// The folder with all in it, and those above it up to `root` that are empty then.
void RemoveRunFolder(const std::string& folder, const std::string& root);
void StoreDescription(const std::string& output_folder, const TargetDescription& description);
// Of the invocation that `folder` lies in: looks there and above. Empty when there is none.
std::optional<TargetDescription> FindStoredDescription(const std::string& folder);

// A run's folder from what a person types: the folder, or a run's id under the newest invocation
// that kept it. Throws UsageError.
std::string FindRunFolder(const std::string& folder_or_id);
// An invocation's folder: the folder, or "latest".
std::string FindOutputFolder(const std::string& folder_or_latest);

// The trace of a stored run, read to its end; what was wrong with it goes to `problems`.
RunTrace LoadTrace(const std::string& folder, int world_size, int planned_steps,
                   std::vector<std::string>* problems = nullptr);

}  // namespace trainwreck
