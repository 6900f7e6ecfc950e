// What several verbs are told on the command line, as plain values.
#pragma once

#include <string>
#include <vector>

#include "harness/outcome/exit_status.h"

namespace trainwreck {

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
