// Ranks on other machines. There each rank is started by a guard, `trainwreck rank -- COMMAND`
// (rank_guard.h), and the launcher sees and reaches it by files in a folder that all machines
// share. The files may be seen late; nothing here compares the clocks of two machines.
//
//   RUN/guards.PHASE.ATTEMPT/
//     rank3.json   of rank 3's guard, replaced as a whole when something changes, and every second:
//       {"beat": 17, "host": "n2", "pid": 4711, "state": "running", "code": 0, "signal": 0,
//        "trace_bytes": 0, "output_bytes": [0, 0], "addresses": ["10.0.0.3"],
//        "unanswered": ["10.0.0.2"], "down": "eth0",
//        "obeyed": [{"id": 0, "before": "running", "processes": 1}],
//        "before": [{"pid": 4700, "code": -1, "signal": 9}]}
//     orders.json  of the launcher, likewise:
//       {"beat": 18, "orders": [{"id": 0, "rank": 3, "signal": 19, "seconds": 0.5}]}
//       or, in place of signal and seconds, "command": {"run": "..", "undo": "..", "probe": "..",
//       "seconds": 0}, whose answer has "before" and "after" of the probe, "status" and "words"
//     over         the run has ended: each guard kills what is left
//     rank3.stdout, rank3.stderr  what rank 3 has written there; the launcher gets it, too
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/process/node_commands.h"
#include "harness/protocol/json.h"

namespace trainwreck {

inline constexpr char kGuardFolderBegin[] = "guards.";  // of its name in the run's folder

// A signal to all processes of a rank; after `seconds` they go on by SIGCONT (0: never). Or a
// command on its machine.
struct GuardOrder {
  int id = 0;
  int rank = 0;
  int signal = 0;
  double seconds = 0;
  std::optional<NodeCommand> command = std::nullopt;
};

struct ObeyedOrder {
  int id = 0;
  std::string before;                               // the state of the rank's first process
  int processes = 0;                                // that got the signal
  std::optional<NodeAnswer> answer = std::nullopt;  // of a command
};

struct EndedLife {
  int pid = 0;
  int code = 0;  // -1: by a signal
  int signal = 0;
};

struct GuardedRank {
  std::string host;
  int pid = 0;                    // on that machine
  std::string state = "running";  // or "stopped", "ended"
  int code = 0;                   // of one that has ended; -1: by a signal
  int signal = 0;
  std::int64_t beat = 0;
  std::int64_t trace_bytes = 0;  // of one that has ended: how long its trace is, on its machine
  std::array<std::int64_t, 2> output_bytes{};  // likewise: its standard output and error
  std::vector<std::string> addresses;          // of that machine
  std::vector<std::string> unanswered;  // addresses that the rank sends to, and that do not answer
  std::string down;  // an interface of that machine that had a link when the guard began
  std::vector<ObeyedOrder> obeyed;  // all that were, also by guards before it
  std::vector<EndedLife> before;    // how the rank ended before the launcher started it again
};

std::string GuardFolder(const std::string& run_folder, const std::string& phase, int attempt);
std::string GuardFile(const std::string& guard_folder, int rank);

Json ToJson(const GuardedRank& rank);
Json ToJson(const GuardOrder& order);
GuardOrder OrderFromJson(const Json& json);  // throws Json::exception
// All ranks whose guards have written. What cannot be read is left out: the next look may see it.
std::map<int, GuardedRank> ReadGuards(const std::string& guard_folder);
std::optional<GuardedRank> ReadGuard(const std::string& guard_folder, int rank);

// Replaces the file by a rename: who reads it sees the old one or the new one. False: it failed.
bool ReplaceFile(const std::string& path, const std::string& text);

// Tells the guards of all attempts that the run is over.
void EndGuards(const std::string& run_folder);

// How often the two sides read and write. A file system serves some thousand calls a second, so
// above 512 ranks all of this gets slower, in proportion.
struct GuardPace {
  using Duration = std::chrono::duration<double>;
  explicit GuardPace(int ranks);
  double scale;
  Duration orders_every{0.1 * scale};  // a guard looks for orders, and for `over`
  Duration read_every{0.25 * scale};   // the launcher reads the guards' files
  Duration beat_every{1.0 * scale};    // each writes its own
  // A guard that is not heard of is lost, with its machine: 5 s * scale, or the seconds of the
  // variable TRAINWRECK_GUARD_LOST_AFTER, where files are seen later.
  Duration lost_after;
  // What a launcher that failed has left has so long to be seen; it may have killed guards.
  Duration heard_after_failure = 0.4 * lost_after;
  // No stall is told sooner: what was lost is known by then.
  Duration stall_after = lost_after + 2 * read_every;
  Duration patience = 6 * lost_after;  // after which a guard takes the harness for lost
};

// The launcher's side.
class RankGuards {
 public:
  using Clock = std::chrono::steady_clock;

  RankGuards(std::string folder, int ranks) : folder_(std::move(folder)), pace_(ranks) {}
  // Reads and writes the files, when it is time; to be called often. The folder is the guards' to
  // make: without them this costs next to nothing.
  void Look(Clock::time_point now = Clock::now());
  // Reads them at once.
  void Read(Clock::time_point now = Clock::now());

  const std::map<int, GuardedRank>& ranks() const { return ranks_; }
  const GuardPace& pace() const { return pace_; }
  const std::string& folder() const { return folder_; }
  bool IsLost(int rank, Clock::time_point now = Clock::now()) const;
  // Returns the order's id, which is in `obeyed` of the rank when it was carried out.
  int Order(GuardOrder order);

 private:
  std::string folder_;
  GuardPace pace_;
  std::map<int, GuardedRank> ranks_;
  std::map<int, Clock::time_point> beats_seen_;  // when each last changed
  std::vector<GuardOrder> orders_;
  std::int64_t beat_ = 0;
  bool has_new_order_ = false;
  Clock::time_point next_read_, next_beat_;
};

}  // namespace trainwreck
