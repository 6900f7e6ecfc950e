// Watches the ranks that a launcher of somebody else's started, beside it: which rank ended first
// and how, which was stopped. The launcher itself is one process, and says of them what it likes.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "harness/process/rank_processes.h"
#include "harness/targets/launcher_report.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {

class RankWatch {
 public:
  using Write = std::function<void(const std::string& event, Json fields)>;

  // Of the run whose processes have `run_folder` in their environment. `write` gets the events
  // `exited` and `stopped` of ranks, as they happen, and `rank_failed` at the end.
  RankWatch(LauncherKind kind, int ranks, std::string run_folder, Write write)
      : kind_(kind), ranks_(ranks), run_folder_(std::move(run_folder)), write_(std::move(write)) {}

  // Often, while the launcher runs.
  void Look();
  // The launcher has ended with `status`, and has written `words` on its standard error.
  void Finish(int status, const std::string& words);

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    int pid = 0;
    bool is_stopped = false;
  };

  void FindNew();
  void TellEnd(int rank, int pid, const ProcessEnd* end);

  const LauncherKind kind_;
  const int ranks_;
  const std::string run_folder_;
  const Write write_;
  std::map<int, Seen> alive_;         // by rank
  std::optional<RankFailure> first_;  // that was seen to fail
  std::set<int> told_;                // ranks whose way to end was seen
  Clock::time_point next_search_;
};

}  // namespace trainwreck
