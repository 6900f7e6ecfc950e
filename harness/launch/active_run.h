// One run on its way: its folder, its guard, its phases, attempts and ranks, its watchdog and
// budgets. The launcher's loop calls OnReadable when the guard's socket has something, and Tick now
// and then; nothing here waits.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/launch/core_use.h"
#include "harness/launch/first_step.h"
#include "harness/launch/launcher.h"
#include "harness/launch/pace.h"
#include "harness/launch/restarts.h"
#include "harness/launch/run_folder.h"
#include "harness/launch/shared_phases.h"
#include "harness/launch/watchdog.h"
#include "harness/process/rank_guards.h"
#include "harness/process/spawn_client.h"
#include "harness/protocol/trace.h"
#include "harness/protocol/trace_reader.h"

namespace trainwreck {

class ActiveRun {
 public:
  using Clock = std::chrono::steady_clock;

  ActiveRun(const Run& run, const LauncherOptions& options, const LauncherCallbacks& callbacks,
            SharedPhases& shared);

  // Before its start: the numbers of the machine's GPUs that it has got, and its
  // CUDA_VISIBLE_DEVICES (empty: as it is).
  void UseGpus(std::vector<int> gpus, std::string visible) {
    gpus_ = std::move(gpus);
    visible_gpus_ = std::move(visible);
  }
  const std::vector<int>& gpus() const { return gpus_; }
  // Starts the run. Never throws: an error becomes the run's end.
  void Start(std::unique_ptr<SpawnConnection> guard);
  void OnReadable();
  void Tick(Clock::time_point now);
  void EndWith(RunEnd end, const std::string& detail);  // kills the ranks when there are any

  const Run& run() const { return run_; }
  int fd() const { return guard_ ? guard_->fd() : -1; }
  // That the run needs now, of the `most` that it may use. 0 while its ranks only wait, for a dead
  // or stopped rank, for example.
  double cores(double most) const {
    if (state_ == State::kRunning) return core_use_.cores(most);
    return running_ > 0 ? most : 0;
  }
  bool done() const { return state_ == State::kDone; }
  RunResult TakeResult() { return std::move(result_); }
  // The guard, if no process of the run is left below it, so that it can serve another run. Else
  // null.
  std::unique_ptr<SpawnConnection> TakeGuard() { return std::move(guard_); }

 private:
  enum class State { kRunning, kKilling, kReaping, kBackingOff, kDone };
  enum class Next { kFinish, kPhase, kRestart };  // when all is reaped

  struct Rank {
    int pid = 0;
    bool running = false;
    std::int64_t stderr_begin = 0;
    int code = -1;
    int signal = 0;
    bool Died() const { return !running && (code != 0 || signal != 0); }
  };

  // Its files are there already: another run, `maker`, has made it.
  void SkipFirstPhase(const std::string& maker);
  void BeginAttempt();
  void WritePlan(const Plan& plan) const;
  SpawnRequest RequestOf(int rank) const;
  void Handle(const Json& message);
  void OnExit(const Json& message);
  void OnNoneRuns();
  void OnAllExited();
  void NoticeEarlyEnd();
  // Writes the last collective call of each rank down, before its file is begun anew.
  void NoteLastCalls();
  void OnReaped();
  void Restart(const std::string& why, std::optional<int> culprit);
  void BackOff(Clock::time_point now);
  void BeginRestart();
  int StepsSaved() const;  // of the newest checkpoint
  void KillRanks(const std::string& why);
  void SignalRanks(int signal);
  void Finish();
  void MeasureCoreUse(double now_s);
  void CheckPace(Clock::time_point now);
  void EndOverBudget(double now_s);
  bool AwaitsGuards(double idle_s) const;
  bool AwaitsFiles() const;
  bool HasStoppedRank(Clock::time_point now);
  void CheckDisk();
  std::string DiskSentence() const;
  void CheckTrace();
  bool PollTrace();
  bool BeginsWithACall() const;
  bool MayRestart() const { return restarts_.May(Seconds(Clock::now())); }
  void WriteEvent(const std::string& name, Json fields);
  double Seconds(Clock::time_point now) const;
  std::vector<RankState> RankStates() const;
  std::vector<RankState> StatesOfForeignRanks() const;
  std::string WhoIsNotAnswered() const;
  void EndElsewhere();
  RankState StateOfGuarded(int rank, const GuardedRank& guarded) const;
  const Event* LastOfAttempt(const std::string& name, std::optional<int> rank) const;
  const Event* ForeignFailure() const;
  std::string ForeignDeath(const Event& failed) const;
  // The one of these ranks that died first: the one that did not die because another had.
  int FirstOf(const std::vector<int>& dead) const;
  std::size_t CallsOf(int rank) const;  // collective calls so far
  std::string FirstDeath() const;       // one sentence about it
  // Sentences of what the ranks left in the run's folder about its end.
  std::vector<std::string> WordsLeftBehind() const;
  // The rank whose death is its own; none where the ranks only complain of each other.
  std::optional<int> Culprit() const;
  void RestartAfterDeath();
  bool WasRefused() const;  // a rank said that it cannot carry out the plan
  std::string phase_name() const;
  // The variable that holds a process's rank, where another launcher starts the ranks; else empty.
  std::string rank_variable() const;
  bool is_under_launcher() const { return !rank_variable().empty(); }
  bool LauncherWasKilled() const {
    return is_under_launcher() && !ranks_.empty() && ranks_.front().signal != 0;
  }
  // Of the start in progress.
  int ranks() const;
  int processes() const { return run_.processes > 0 ? run_.processes : ranks(); }

  const Run& run_;
  const LauncherOptions& options_;
  const LauncherCallbacks& callbacks_;
  SharedPhases& shared_;
  RunFolder folder_;
  std::unique_ptr<SpawnConnection> guard_;
  std::unique_ptr<TraceWriter> log_;
  std::unique_ptr<TraceReader> reader_;
  CollectiveComparer comparer_;
  RunResult result_;
  State state_ = State::kRunning;
  Next next_ = Next::kFinish;
  bool has_end_ = false;       // result_.end and detail are settled
  bool log_failed_ = false;    // a full disk, say
  bool was_killed_ = false;    // by us, in this attempt
  bool has_begun_ = false;     // some rank has done something after its start, in this attempt
  FirstStepWatch first_step_;  // used in attempts after the first
  Pace pace_;
  Restarts restarts_;
  std::vector<int> gpus_;
  std::string visible_gpus_;
  int port_ = 0;             // of this attempt's rendezvous; 0: none
  bool asked_once_ = false;  // is_decided was asked about the present steps
  std::size_t phase_ = 0;
  int attempt_ = 0;
  std::vector<Rank> ranks_;
  int running_ = 0;
  int next_spawn_ = 0;
  std::map<int, int> rank_of_spawn_;
  std::vector<int> deaths_;  // ranks in the order of their abnormal ends, in this attempt
  Json restart_cause_;       // fields of the `restarted` event
  std::string last_calls_;   // of the ranks, in the last attempt that failed
  Clock::time_point backoff_end_;
  std::int64_t attempt_memory_bytes_ = 0;
  std::vector<std::string> leaks_;
  CoreUse core_use_;
  Clock::time_point begin_;
  Clock::time_point last_progress_;
  Clock::time_point stops_checked_;
  Clock::time_point next_poll_;
  Clock::time_point next_disk_check_;
  Clock::time_point next_question_;
  Clock::time_point restart_at_ = Clock::time_point::max();  // after a death
  Clock::time_point kill_at_ = Clock::time_point::max();     // a launcher that was told to end
};

// "was killed by SIGKILL", "exited with code 7"
std::string DescribeExit(int code, int signal);

}  // namespace trainwreck
