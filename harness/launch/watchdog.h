// Explains a hang from the traces of a run's ranks: which rank waits, which rank lags behind, in
// which collective.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/run_trace.h"

namespace trainwreck {

// How a rank stands with the operating system. A silent one runs and writes no trace; of a lost
// one's machine nothing is heard; a cut off one runs, and no other machine answers its machine.
enum class RankState { kRunning, kStopped, kDied, kFinished, kLost, kSilent, kCutOff };
const char* ToString(RankState state);

// The fields of a `stalled` event. The lagging rank is one that died, was stopped or is cut off,
// else the one with the fewest collective calls; the waiting rank is the live one with the most.
// Where all have made as many calls, or the other ranks' calls are not known, no rank lags: -1.
// `dead_link`: who gets no answer from whom (peer_links.h); empty: nobody is known to. With one, no
// running rank lags.
Json DescribeStall(const RunTrace& trace, const std::vector<RankState>& ranks, double idle_s,
                   const std::string& dead_link = "");

// "rank 0 waits in all_reduce (call 12, step 5) for rank 1, which died", from the fields above.
std::string StallSentence(const Json& fields);

// Compares what the ranks called at equal call indices.
class CollectiveComparer {
 public:
  // The fields of a `collective_mismatch` event for the first call where operation, shape or dtype
  // differ. Looks only at calls that it has not seen; answers at most once.
  std::optional<Json> Next(const RunTrace& trace);
  void Restart() { compared_ = 0; }  // call indices count anew

 private:
  std::size_t compared_ = 0;  // calls below it agree on all ranks
  bool found_ = false;
};

}  // namespace trainwreck
