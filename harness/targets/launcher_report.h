// Reads what torchrun, mpirun and srun print on standard error about the rank that failed first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/targets/target_spec.h"

namespace trainwreck {

// At the end of standard error, of a launcher or a rank, that are read.
inline constexpr std::int64_t kReportBytes = 256 << 10;

struct RankFailure {
  int rank = -1;
  int code = -1;  // -1 when killed by a signal, as in `exited` events
  int signal = 0;
  int pid = 0;                                               // 0: not said
  std::string words;                                         // of the report itself, may be empty
  bool IsLost() const { return code == -1 && signal == 0; }  // nobody knows how it ended
};

// The failure that caused the others, among failures that were seen at the same moment, in unknown
// order. A rank that loses its peers ends by an exception or an abort, and launchers send SIGTERM.
// So a single rank that was killed in another way was the first. Without one, the answer is a
// guess.
struct FirstFailure {
  RankFailure failure;
  bool is_sure = false;
};
FirstFailure FirstOf(const std::vector<RankFailure>& seen_at_once);  // not empty

// The root cause in the last report of `text`; empty when there is none.
std::optional<RankFailure> ReadLauncherReport(LauncherKind kind, const std::string& text);

// The first node that srun gave up, as "n2"; empty: none.
std::string FailedNode(LauncherKind kind, const std::string& text);

// The lines that the failed rank itself wrote: without the launcher's own log and report. Those
// that begin with "[rank1]:" belong to that rank alone; the rank of others is not known. A rank
// that was killed had no time for last words.
std::vector<std::string> LinesOfRank(const std::string& text, const RankFailure& failure);
// The last of them, or the one that says what was raised.
std::string WordsOfRank(const std::string& text, const RankFailure& failure);

}  // namespace trainwreck
