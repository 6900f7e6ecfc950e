// Options that several verbs have, as plain values.
#pragma once

#include <string>
#include <vector>

#include "harness/outcome/exit_status.h"

namespace trainwreck {

enum class UseColor { kAuto, kAlways, kNever };
enum class KeepRuns { kAll, kFailed, kNone };

// The options of every verb that needs the target or the scenarios.
struct CommonOptions {
  std::string target;          // empty: see FindTarget
  std::string scenarios_root;  // empty: see FindScenariosRoot
  bool uses_suite = false;     // the scenarios that come with trainwreck, whatever lies here
  UseColor color = UseColor::kAuto;
  bool verbose = false;
  bool preflight = true;     // for verbs that make many runs; see preflight.h
  std::string command_line;  // of the whole invocation, as typed
};

// Selects scenarios, or some of their points.
struct SelectionOptions {
  std::vector<std::string> paths;  // files, folders, names; empty: the scenarios root
  std::string keyword;             // -k
  std::string tag;                 // -t
  int shard_index = 1;             // from 1
  int shard_count = 1;
  std::string shard_costs;  // a file with what cases took; empty: estimated from plans
};

// A kind of report beside those of harness/report. It is made from traces and not from verdicts, so
// only `report` writes it.
inline constexpr const char* kTensorBoard = "tensorboard";

struct ReportRequest {
  std::string kind;
  std::string path;
};

}  // namespace trainwreck
