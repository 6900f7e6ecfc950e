// What the command line says, as plain values: one struct a verb. arguments.h fills them in, each
// verb reads its own.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trainwreck {

// Exit codes; docs/cli.md explains them, and so does `trainwreck explain exit-codes`.
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
  bool preflight = true;  // of verbs that make many runs; see preflight.h
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

struct RunOptions {
  SelectionOptions selection;
  int cores = 0;  // 0: as many as this process may use
  int seeds = 0;  // 0: as the scenarios say
  std::vector<std::string> set;
  bool fail_fast = false;
  int repeat = 1;
  std::vector<std::string> require;
  std::optional<int> max_skips;
  std::vector<ReportRequest> reports;
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
  bool bisect_codes = false;                     // exit as `git bisect run` expects
  std::vector<std::string> points;
};

struct ListOptions {
  std::string what = "scenarios";
  std::string format = "text";
  SelectionOptions selection;
};

struct ValidateOptions {
  SelectionOptions selection;
};

struct ExplainOptions {
  std::string name;
};

struct CheckOptions {
  std::string trace;
  std::vector<std::string> formulas;
  std::vector<std::pair<std::string, std::string>> arms;  // name, folder
  std::string format = "text";
  bool all_steps = false;
  bool finished = false;  // a trace without its end is whole
  int steps = 0;          // that a trace without a plan was to have; 0: not known
};

struct JudgeOptions {
  std::string run;
  SelectionOptions selection;
  int seeds = 0;  // 0: as the scenarios say
  std::vector<std::string> set;
  std::vector<ReportRequest> reports;
  std::string output;  // empty: `judged` in the run's folder
};

struct ReportOptions {
  std::string run;
  std::vector<ReportRequest> reports;
};

struct RerunOptions {
  std::string run;
  std::string output;
  bool exec = false;
};

struct HistoryOptions {
  std::string file;      // of the history; empty: see HistoryPath
  std::string scenario;  // a name or a glob; empty: invocations, not cases
  std::string format = "text";
  int limit = 20;
};

struct BaselineOptions {
  std::string file;
  std::string action;  // "set" or "show"
  std::string run = "latest";
  std::string name = "main";
};

struct CompareVerbOptions {
  std::string file;
  std::string a = "baseline";
  std::string b = "latest";
  double confidence = 0.95;
  double shift = 2;
  double max_slowdown = 0;
  double max_memory = 0;
  bool only_common = false;
  bool accept_changes = false;
  int more_seeds = 0;  // so many more seeds at most are run, where they are missing; 0: none
  std::vector<ReportRequest> reports;
};

struct NewOptions {
  std::string kind;  // "scenario" or "fault"
  std::string name;
};

struct BisectOptions {
  std::vector<std::string> goods;
  std::string bad;
  std::string scenario;
  std::string test;  // a shell command, instead of a scenario
  double test_limit_seconds = 7200;
  std::string term_old, term_new;  // words for good and bad; empty: the usual ones
  std::vector<std::string> skips;  // revisions or ranges
  std::vector<std::string> marks;  // REV=good, REV=bad, REV=skip
  std::vector<std::string> paths;  // after `--`: only commits that change these
  bool first_parent = false;
  bool no_flakes = false;       // before the culprit no run fails
  std::string json;             // file for the result
  std::string metric;           // a formula; empty: whether the scenario passes
  std::string arm = "control";  // that the metric is read in
  std::string build;            // a shell command, run in the worktree
  double build_limit_seconds = 7200;
  std::vector<std::string> artifacts;
  double confidence = 0.95;
  int max_runs = 1000;
  int jobs = 0;  // 0: as many cores as this process may use
  bool fresh = false;
  std::vector<std::string> between;  // two scenarios, good and bad; no commits then
  std::string replay;                // a log; nothing is run
};

struct DoseOptions {
  std::string scenario;
  std::string parameter;           // inject.ID.with.NAME
  std::optional<double> from, to;  // else the bounds that the fault has for it
  int levels = 33;
  bool linear = false;
  double confidence = 0.95;
  int max_runs = 400;
  int jobs = 0;
  std::string output;
};

struct MatrixOptions {
  SelectionOptions selection;
  int seeds = 0;          // 0: as the scenarios say
  int control_seeds = 0;  // 0: as many as of the fault
  int cores = 0;
  std::vector<std::string> set;
  std::string output;
  std::string from;  // the folder of a matrix that kept its runs; nothing is run
  bool keep = false;
  bool exec = false;
};

struct CheckupOptions {
  std::vector<std::string> paths;  // one recipe; with `score` any, none: all
  std::string arm = "control";     // or "fault"
  int seeds = 1;
  int cores = 0;
  std::vector<std::string> set;
  std::string report;  // a JSON file; empty: none
  bool score = false;  // many checkups of which the answer is known
};

struct LrRangeOptions {
  std::string recipe;
  std::string arm = "control";
  std::optional<double> from, to;  // else the recipe's rate / 1000 and * 100
  int rates = 16;
  int seeds = 2;
  int steps = 0;  // 0: as the recipe says
  int cores = 0;
  std::vector<std::string> set;
  std::string report;
};

struct Options {
  std::string verb;
  std::string command_line;  // as typed
  CommonOptions common;
  RunOptions run;
  ListOptions list;
  ValidateOptions validate;
  ExplainOptions explain;
  CheckOptions check;
  JudgeOptions judge;
  ReportOptions report;
  RerunOptions rerun;
  HistoryOptions history;
  BaselineOptions baseline;
  CompareVerbOptions compare;
  NewOptions create;
  BisectOptions bisect;
  DoseOptions dose;
  MatrixOptions matrix;
  CheckupOptions checkup;
  LrRangeOptions lr_range;
};

}  // namespace trainwreck
