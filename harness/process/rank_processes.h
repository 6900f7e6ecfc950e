// The processes of ranks that another launcher started (torchrun, mpirun, srun). They are
// recognised by the variable in which that launcher names their rank.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainwreck {

struct RankProcess {
  int pid = 0;
  char state = '?';  // as ps shows it: R runs, S sleeps, T is stopped, Z has ended
};

// Rank -> the topmost process of that rank, in the run whose processes have
// `run_folder` in kRunVariable. Processes in `except` are left out. Ended processes are not found:
// they no longer have an environment.
std::map<int, RankProcess> FindRankProcesses(const std::string& run_folder,
                                             const std::string& rank_variable, int except);

struct ProcessEnd {
  char state = '?';
  int status = 0;  // as wait(2) gives it, for an ended process
};
// Kills them all. The first one last, when the others have ended: whoever waits for it finds none
// of them running.
void KillTogether(const std::vector<int>& pids);

// The state of a process; empty: no process has that number.
std::optional<ProcessEnd> ReadProcessEnd(int pid);

}  // namespace trainwreck
