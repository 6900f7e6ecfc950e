// What torchrun, mpirun and srun say of the rank that failed first, on their standard error.
#pragma once

#include <optional>
#include <string>

#include "harness/targets/target_spec.h"

namespace trainwreck {

struct RankFailure {
  int rank = -1;
  int code = -1;  // -1 when killed by a signal, as in `exited` events
  int signal = 0;
  int pid = 0;        // 0: not said
  std::string words;  // of the report itself, may be empty
};

// Of the last report in `text`, its root cause; empty when there is none.
std::optional<RankFailure> ReadLauncherReport(LauncherKind kind, const std::string& text);

// The last lines that the failed rank itself wrote: without the launcher's own log and report.
// Lines that begin with "[rank1]:" belong to that rank alone; of others nobody knows whose they
// are, and a rank that was killed had no time for last words.
std::string WordsOfRank(const std::string& text, const RankFailure& failure);

}  // namespace trainwreck
