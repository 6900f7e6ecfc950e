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
// in one second get two folders. The folder belongs to this process until it ends or makes another
// one: other processes that want the same folder meanwhile are refused. With `is_latest`, `latest`
// points to the new one. Throws ConfigurationError.
std::string MakeOutputFolder(const std::string& wanted, bool is_latest);

// "2026-01-31T12:00:00Z"
std::string UtcNow();

// Writes a file beside its place and renames it: readers see the old file or the whole new one.
// Throws std::system_error.
void WriteWholeFile(const std::string& path, const std::string& text);
std::string ReadWholeFile(const std::string& path);  // throws std::runtime_error

// Checks that a file can be written, before the work that will fill it. `option` named the file.
// Makes its folder. Throws ConfigurationError.
void CheckWritable(const std::string& path, const std::string& option);

struct StoredRun {
  Run run;
  std::optional<RunEnd> end;  // empty: not known
  std::string detail;
};

Json ToJson(const Run& run);
Run RunFromJson(const Json& json);  // throws std::runtime_error

// Stores the run in result.folder. If this fails, on a full disk for example, a message on standard
// error says so once; the verdicts do not change.
void StoreRun(const Run& run, const RunResult& result);
StoredRun LoadStoredRun(const std::string& folder);  // throws ConfigurationError
// Removes the folder with everything in it, then the folders above it up to `root` that have become
// empty.
void RemoveRunFolder(const std::string& folder, const std::string& root);
void StoreDescription(const std::string& output_folder, const TargetDescription& description);
// The description that was stored with the invocation around `folder`: looks there and above. Empty
// when there is none.
std::optional<TargetDescription> FindStoredDescription(const std::string& folder);

// What traces below `folder` call a signal that may be given as its program calls it: "loss" of
// "train_loss", "grad_norm{head.*}" of "gnorm{head.*}".
std::string StoredSignalName(const std::string& folder, const std::string& signal);

// The folder of a run that the user names: by its folder, or by a run's id under the newest
// invocation that kept it. Throws UsageError.
std::string FindRunFolder(const std::string& folder_or_id);
// The folder of an invocation that the user names: by its folder, or as "latest".
std::string FindOutputFolder(const std::string& folder_or_latest);

// The trace of a stored run, read to its end; its errors go to `problems`.
RunTrace LoadTrace(const std::string& folder, int world_size, int planned_steps,
                   std::vector<std::string>* problems = nullptr);

}  // namespace trainwreck
