// The options of `run`. They are also what a recorded command line is read into.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cli/arguments.h"
#include "harness/judge/verdict.h"
#include "harness/launch/device_room.h"

namespace trainwreck {

struct RunOptions {
  CommonOptions common;
  SelectionOptions selection;
  int cores = 0;                       // 0: as many as this process may use
  int gpu_runs = DeviceLimits().runs;  // on one GPU at a time
  int seeds = 0;                       // 0: as the scenarios say
  std::vector<std::string> set;
  bool fail_fast = false;
  int repeat = 1;
  std::vector<std::string> require;
  std::optional<int> max_skips;
  std::vector<ReportRequest> reports;
  bool html = true;     // report.html beside verdicts.json
  std::string output;   // empty: .trainwreck/runs/<UTC time>
  std::string history;  // the file; "none"; empty: see HistoryPath
  bool dry_run = false;
  bool exec = false;  // --isolate=exec
  bool verify_determinism = false;
  bool full = false;
  KeepRuns keep = KeepRuns::kFailed;
  // Restrict the run to some arms: readings instead of a verdict.
  std::vector<std::string> arms;
  std::vector<int> only_seeds;
  std::optional<std::pair<int, int>> each_seed;  // [first, end)
  bool control_only = false;                     // with each_seed: judge control alone
  bool bisect_codes = false;                     // exit as `git bisect run` expects
  std::vector<std::string> points;
  std::string on;                   // "slurm"; empty: on this machine
  int shards = 0;                   // with `on`
  std::vector<std::string> sbatch;  // options of sbatch, as "partition=gpu"
};

// What must hold of all verdicts together: --require and --max-skips.
struct Gates {
  std::vector<std::string> require;
  std::optional<int> max_skips;
};

// The exit status of an invocation. What was seen on the way is worse than a gate that is violated
// (which is said on stderr), and a gate is worse than "nothing".
int GatedStatus(const Gates& gates, const std::vector<Verdict>& verdicts);

void DeclareRun(VerbArguments& arguments, RunOptions& options);

}  // namespace trainwreck
