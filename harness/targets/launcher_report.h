// What torchrun, mpirun and srun say of the rank that failed first, on their standard error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/targets/target_spec.h"

namespace trainwreck {

struct RankFailure {
  int rank = -1;
  int code = -1;  // -1 when killed by a signal, as in `exited` events
  int signal = 0;
  int pid = 0;        // 0: not said
  std::string words;  // of the report itself, may be empty
};

// Of failures that were seen at one look, so that their order is not known: the one that the others
// followed. A rank that loses its peers ends by an exception or an abort, and launchers send
// SIGTERM; so the only one that was killed otherwise was the first. Without such a one it is a
// guess.
struct FirstFailure {
  RankFailure failure;
  bool is_sure = false;
};
FirstFailure FirstOf(const std::vector<RankFailure>& seen_at_once);  // not empty

// Of the last report in `text`, its root cause; empty when there is none.
std::optional<RankFailure> ReadLauncherReport(LauncherKind kind, const std::string& text);

// The last lines that the failed rank itself wrote: without the launcher's own log and report.
// Lines that begin with "[rank1]:" belong to that rank alone; of others nobody knows whose they
// are, and a rank that was killed had no time for last words.
std::string WordsOfRank(const std::string& text, const RankFailure& failure);

}  // namespace trainwreck
