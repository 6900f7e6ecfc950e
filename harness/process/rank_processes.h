// The processes of ranks that a launcher of somebody else's started (torchrun, mpirun, srun): they
// are told by the variable in which that launcher names their rank.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace trainwreck {

struct RankProcess {
  int pid = 0;
  char state = '?';  // as ps shows it: R runs, S sleeps, T is stopped, Z has ended
};

// Rank -> the process that stands above all others of that rank. Of the run whose processes have
// `run_folder` in kRunVariable; those of `except` are left out. Ended processes are not found: they
// have no environment any more.
std::map<int, RankProcess> FindRankProcesses(const std::string& run_folder,
                                             const std::string& rank_variable, int except);

struct ProcessEnd {
  char state = '?';
  int status = 0;  // as wait(2) gives it, of one that has ended
};
// Empty: nobody has that number.
std::optional<ProcessEnd> ReadProcessEnd(int pid);

}  // namespace trainwreck
