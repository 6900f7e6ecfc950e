// Faults that need nothing of the program: its environment, its files, its processes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/process/rank_guards.h"
#include "harness/protocol/plan.h"
#include "harness/targets/target_spec.h"
#include "harness/targets/write_watch.h"

namespace trainwreck {

class OutsideFaults {
 public:
  // `guards` reach ranks on other machines. `fire` writes the event with these fields.
  OutsideFaults(const Plan& plan, int rank, int ranks, LauncherKind launcher, RankGuards& guards,
                const std::string& run_folder, std::function<void(Json)> fire)
      : plan_(plan),
        rank_(rank),
        ranks_(ranks),
        launcher_(launcher),
        guards_(guards),
        commands_(run_folder, rank),
        fire_(std::move(fire)) {}
  // Begins to watch what is written, where a fault needs it. The folder must be there.
  void WatchCheckpoints();

  // The faults before the program starts. Those with a result return whether there is something to
  // do, or was done.
  void DamageCheckpoints();
  bool WantsDataCopy() const;
  void DamageData(const std::string& copy);
  void ChangeEnvironment(std::map<std::string, std::string>& environment);

  // While the program runs below process `root`. Performs every fault that is due up to `step`. The
  // program's first step was `first`: what one that goes on does not repeat is not due again.
  void ActAtStep(int first, int step, int root);
  // Performs what is due while a checkpoint is written.
  void ActOnWrites(int step);
  // A file descriptor that is readable when a checkpoint is written; -1: nobody waits for that.
  int WritesFd() const { return writes_ ? writes_->fd() : -1; }
  // Says which faults the guards have performed since the last call.
  void HearGuards();
  // The same once the program has ended: waits for the answers that guards still owe, and for how
  // their ranks ended. Machines see each other's files late. Where not all ranks have ended well,
  // some guards may have been killed, and none is waited for that long.
  void HearLastOfGuards(bool have_all_ended = false);
  // Lets those go on whose pause is over, and undoes what is due. Returns whether a pause lasts.
  bool EndPauses();

 private:
  using Clock = std::chrono::steady_clock;
  struct Pause {
    int rank;
    std::vector<int> pids;
    Clock::time_point until;
  };
  struct Due {
    const PlannedFault* fault;
    int rank;
    std::vector<int> pids;  // to look for them takes longer than to write a small file; a guarded
                            // rank's are not known here
    int files_left;         // to be closed before it acts
  };

  struct Ordered {  // a guard, to do something
    const PlannedFault* fault;
    int id;
    Json fields;  // of the event
  };

  bool ActsAtStart(const PlannedFault& fault) const;
  void DamageFiles(const PlannedFault& fault, const std::string& folder);
  void ActOnRank(const PlannedFault& fault, int rank, int step, int root);
  bool IsGuarded(int rank) const { return guards_.ranks().contains(rank); }
  // Sends `signal` of the fields, and says so with them. A guarded rank goes on after `seconds`.
  void Send(const PlannedFault& fault, int rank, int step, const std::vector<int>& pids,
            Json fields, double seconds = 0);
  void RunOnNode(const PlannedFault& fault, int rank, int step);
  void FireAnswer(const PlannedFault& fault, const NodeAnswer& answer, Json fields);
  void Fire(const PlannedFault& fault, Json fields);

  const Plan& plan_;
  int rank_;
  int ranks_;
  LauncherKind launcher_;
  RankGuards& guards_;
  NodeCommands commands_;
  std::function<void(Json)> fire_;
  int next_step_ = -1;  // the next step to act at; -1: none was seen
  std::vector<Pause> pauses_;
  std::unique_ptr<WriteWatch> writes_;
  std::vector<Due> at_next_save_;
  std::vector<Ordered> ordered_;
};

}  // namespace trainwreck
