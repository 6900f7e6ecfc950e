// Runs trainings: processes, ranks, phases, restarts, budgets, a watchdog on progress; packs runs
// over the cores. One thread, one event loop; nothing it starts outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/launch/device_room.h"
#include "harness/launch/pace.h"
#include "harness/launch/trace_bits.h"
#include "harness/plan/run.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck {

class TraceRoom;

// A command that speaks the protocol.
struct Target {
  std::vector<std::string> command;  // argv
  std::map<std::string, std::string> environment;
  std::string folder;               // to run in; empty: the harness's own
  bool has_fork_server = false;     // understands --fork-server
  std::vector<DeviceInfo> devices;  // that it sees: runs on GPUs are packed by them, too
  DeviceLimits device_limits;
  // Whether to set RANK, WORLD_SIZE and the other variables of launchers. False for a
  // single-process program that does not speak the protocol: some programs form a group when they
  // see these variables.
  bool sets_ranks = true;
  // The variable that holds a process's rank, where the command has its own launcher; empty: this
  // launcher starts the ranks.
  std::string rank_variable;
  // A command that starts ranks by another launcher and watches them, for recipes that name one:
  // LAUNCHER, the number of ranks and `command` are added to it. Empty: there is none.
  std::vector<std::string> launch_ranks;
  std::map<std::string, std::string> rank_variables;  // of those launchers, as rank_variable
  TimeLimits limits;
  std::optional<std::int64_t> disk_bytes;  // that a run may write; empty: LauncherOptions says it
  std::string home;                // folder of trainwreck.yaml: the digest has paths relative to it
  std::vector<std::string> files;  // other files of the user that count in the digest
  std::map<std::string, std::string> fingerprint;  // versions: "python" -> "3.11.2"
};

// Runs `TARGET --describe`, or takes it from the cache by the binary's digest. Throws
// std::runtime_error with the target's output when that is no description.
TargetDescription Describe(const Target& target, const std::string& cache_dir);

// A digest of the command and of the contents of its files: the program, every argument that is a
// file, and `files`. Two targets with the same digest are the same program, even in different
// folders. The libraries that they load are not in it.
std::string DigestOfTarget(const Target& target);

enum class Isolation { kFork, kExec };

struct LauncherOptions {
  Target target;
  Isolation isolation = Isolation::kFork;
  int cores = 0;                          // 0: as many as this process may use
  std::string output_dir;                 // each run gets output_dir/<run id>/
  std::int64_t disk_bytes = 256LL << 20;  // per run, where the target has no limit of its own
  // The memory that the traces of several runs share, finished runs included; may be empty. A run
  // that exceeds it loses its trace and ends as garbage, which no claim excuses.
  std::function<std::shared_ptr<TraceRoom>(const Run&)> room_of;
};

enum class RunEnd {
  kCompleted,      // every rank ended with an `end` record and exit code 0
  kDecided,        // stopped by us: all its checks were decided
  kFailed,         // a rank failed, and no restart was left or allowed
  kStalled,        // the watchdog saw no progress
  kTimeout,        // over its budget of seconds
  kLeak,           // left processes behind (they were killed)
  kDiskBudget,     // wrote too much
  kGarbage,        // its trace could not be read
  kInfrastructure  // could not be started, ...
};
const char* ToString(RunEnd end);
std::optional<RunEnd> FindRunEnd(std::string_view name);

struct RankExit {
  int rank = 0;
  int attempt = 0;
  std::string phase;
  int code = -1;  // exit code, -1 when killed by a signal
  int signal = 0;
  std::string last_words;         // the tail of its stderr
  std::int64_t stderr_begin = 0;  // where its own part of that file begins
};

struct RunResult {
  RunEnd end = RunEnd::kInfrastructure;
  std::string detail;  // one sentence for people
  std::string folder;
  RunTrace trace;  // finished; with the launcher's own events in it
  std::vector<RankExit> exits;
  std::vector<std::string> problems;  // of its trace files
  int restarts = 0;
  double wall_seconds = 0;
  double cpu_seconds = 0;
  std::int64_t peak_memory_bytes = 0;
  std::int64_t disk_bytes = 0;  // that its folder holds at its end
  // The part of the trace that is kept when the trace is freed (filled in by the judge).
  std::map<std::string, double> final_signals;  // of rank 0, without signals of modules
  double step_seconds = 0;                      // median of rank 0; 0: not known
  TraceBits bits;
};

struct LauncherCallbacks {
  // Asked now and then about an unfinished run; true: everything is known, stop it. May be empty.
  std::function<bool(const Run&, const RunTrace&)> is_decided;
  std::function<void(const Run&, RunResult)> finished;
  std::function<void(int running, int done, int total)> progress;  // may be empty
};

class Launcher {
 public:
  explicit Launcher(LauncherOptions options);
  ~Launcher();

  // Runs all, then returns. Ends early, and kills everything, when the user interrupts
  // (process/interruption.h) or a callback calls Stop(). Unfinished runs are then not reported.
  void RunAll(const std::vector<const Run*>& runs, const LauncherCallbacks& callbacks);

  // Ends this launcher: it runs nothing any more.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainwreck
