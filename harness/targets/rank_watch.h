// Watches the ranks of another launcher, beside that launcher: which rank ended first and how,
// which was stopped. The launcher is one process, and its own report may be incomplete.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/process/rank_guards.h"
#include "harness/process/rank_processes.h"
#include "harness/targets/launcher_report.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {

class RankWatch {
 public:
  using Write = std::function<void(const std::string& event, Json fields)>;

  // Watches the run whose processes have `run_folder` in their environment, or whose `guards` say
  // how its ranks are. `write` gets the events `exited`, `stopped` and `node_lost` of ranks when
  // they happen, and `rank_failed` at the end.
  RankWatch(LauncherKind kind, int ranks, std::string run_folder, const RankGuards& guards,
            Write write)
      : kind_(kind),
        ranks_(ranks),
        run_folder_(std::move(run_folder)),
        guards_(guards),
        write_(std::move(write)) {}

  // Looks at the ranks once; to be called often while the launcher runs.
  void Look();
  // The launcher has ended with `status`, and has written `words` on its standard error.
  void Finish(int status, const std::string& words);

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    int pid = 0;
    bool is_stopped = false;
    bool is_lost = false;
  };

  void FindNew();
  void NoteRestart();
  std::vector<RankFailure> LookHere();
  std::vector<RankFailure> LookAtGuards();
  void TellLivesBefore(int rank, const GuardedRank& guarded);
  void NoteStopped(int rank, Seen& seen, bool is_stopped);
  std::optional<RankFailure> LostWithNode(const std::string& words) const;
  bool KnowsBetter(const RankFailure& reported) const;
  std::string OutputOf(const RankFailure& failure, const std::string& words) const;
  std::optional<RankFailure> TellEnd(int rank, int pid, const ProcessEnd* end);

  const LauncherKind kind_;
  const int ranks_;
  const std::string run_folder_;
  const RankGuards& guards_;
  const Write write_;
  std::map<int, Seen> alive_;          // by rank
  std::optional<RankFailure> first_;   // the first failure seen
  Clock::time_point first_seen_;       // the first at all; those soon after count as seen at once
  std::vector<RankFailure> at_first_;  // all of those
  bool is_first_sure_ = false;  // no rank but those of missed_with_first_ can have ended before
  std::set<int> missed_;        // ranks that ended, nobody saw how
  std::set<int> missed_before_first_;
  std::set<int> missed_with_first_;          // those of them that ended between the same two looks
  bool was_restarted_ = false;               // by the launcher
  std::set<int> told_;                       // ranks whose way to end was seen
  std::map<int, std::size_t> lives_before_;  // of those that guards start, which were told
  std::set<int> found_;                      // ranks that were ever seen
  Clock::time_point next_search_;
};

}  // namespace trainwreck
