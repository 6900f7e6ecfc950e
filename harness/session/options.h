// What several verbs are told on the command line, as plain values, and exit statuses.
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

// Exit codes; docs/guide/cli.md explains them, and so does `trainwreck explain exit-codes`.
enum ExitStatus {
  kExitPassed = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitInvalid = 3,
  kExitNothingRun = 4,
  kExitInconclusive = 5,
  kExitRequirement = 6,
  kExitInfrastructure = 7,
  kExitChanged = 8,  // of compare: something differs, and nothing is known to be worse
  kExitInternal = 70,
  kExitInterrupted = 130,
};

enum class UseColor { kAuto, kAlways, kNever };
enum class KeepRuns { kAll, kFailed, kNone };

// Of every verb that needs the target or the scenarios.
struct CommonOptions {
  std::string target;          // empty: see FindTarget
  std::string scenarios_root;  // empty: see FindScenariosRoot
  UseColor color = UseColor::kAuto;
  bool verbose = false;
  bool preflight = true;     // of verbs that make many runs; see preflight.h
  std::string command_line;  // of the whole invocation, as typed
};

// Which scenarios, or which of their points.
struct SelectionOptions {
  std::vector<std::string> paths;  // files, folders, names; empty: the scenarios root
  std::string keyword;             // -k
  std::string tag;                 // -t
  int shard_index = 1;             // from 1
  int shard_count = 1;
};

// Kinds of reports are those of harness/report, and this: of traces, not of verdicts, so that only
// `report` writes it.
inline constexpr const char* kTensorBoard = "tensorboard";

struct ReportRequest {
  std::string kind;
  std::string path;
};

}  // namespace trainwreck
