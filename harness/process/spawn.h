// Starting the processes of runs. A spawn server is a small process between the launcher and the
// ranks: it forks them on request, reports their ends, and kills every descendant when the
// launcher's end of its socket closes, for whatever reason. The reference trainer can be a spawn
// server (`trainwreck-trainer --fork-server`: a rank is a fork of a warm process). For any other
// command the launcher forks its own server, which execs the command.
//
// During a run, one spawn server serves this run alone: its guard, which the first server forked.
// So every descendant of a guard belongs to that run, however often it forked or changed its
// session. When all descendants are reaped, the guard may serve another run.
//
// Wire: one JSON object a line over a stream socket.
//   launcher -> server
//     {"guard":true}                 with a socket (SCM_RIGHTS): fork a server for it
//     {"spawn":7,"environment":{..},"command":[..],"folder":"path","stdout":"path",
//      "stderr":"path","file_bytes":0}
//     {"kill":7,"signal":9}          the process group of spawn 7
//     {"reap":true,"grace_ms":100}   let every remaining descendant end within the grace, kill the
//                                    others, and what a daemon started for them
//   server -> launcher
//     {"ready":true}
//     {"spawned":7,"pid":4711}
//     {"spawned":7,"error":"No such file or directory: x"}
//     {"exited":7,"code":0,"signal":0,"peak_memory_bytes":1,"cpu_seconds":0.1}
//     {"orphan":4712,"command":"sleep 60"}   outlived its run; it was killed
//     {"reaped":1}                           the answer to "reap"
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

struct SpawnRequest {
  int id = 0;
  std::vector<std::string> command;                // empty: call the server's own child_main
  std::map<std::string, std::string> environment;  // over the server's own
  std::string folder;                              // to exec in; empty: the server's own
  std::string stdout_path;                         // appended to; empty: /dev/null
  std::string stderr_path;
  bool inherits_output = false;  // the server's own standard output and error, not the paths
  std::int64_t file_bytes = 0;   // no file of the child grows beyond it (SIGXFSZ); 0: no bound
};

Json ToJson(const SpawnRequest& request);
SpawnRequest SpawnRequestFromJson(const Json& json);  // throws Json::exception

using ChildMain = std::function<int(const SpawnRequest&)>;

// Serves until the socket closes, then kills every descendant and returns 0. Must be called from a
// process with one thread. Each child is a process group of its own, gets SIGKILL when the server
// dies, starts with all signals as a fresh program has them and with no file descriptor but 0, 1
// and 2, and leaves with _exit(child_main(request)) or by exec. Without child_main every request
// must have a command.
//
//   if (fork_server) {
//     return ServeSpawns(std::stoi(getenv(kSpawnFdVariable)), [](auto&) { return Train(); });
//   }
int ServeSpawns(int socket_fd, const ChildMain& child_main);

// The variable that identifies a run's processes, wherever they are: it names the folder that only
// this run writes to. A launcher such as Slurm's srun has a daemon start the ranks, so they are not
// our descendants; but they get its environment.
inline constexpr char kRunVariable[] = "TRAINWRECK_TRACE";

// Names the file descriptor of the server's socket in the environment of `TARGET --fork-server`.
inline constexpr char kSpawnFdVariable[] = "TRAINWRECK_SPAWN_FD";

// All descendants of `root`, parents before children. Reads all of /proc, so that no kernel option
// is needed.
std::vector<int> Descendants(int root);

// All processes that were started with all of these entries (NAME=VALUE) in their environment, as
// far as this user may read it; without the caller and its ancestors.
std::vector<int> ProcessesWith(const std::vector<std::string>& entries);

// Takes whole lines out of a stream of bytes; the rest stays for the next call.
class LineBuffer {
 public:
  void Append(std::string_view bytes) { bytes_.append(bytes); }
  bool Next(std::string& line);

 private:
  std::string bytes_;
  std::size_t begin_ = 0;
};

}  // namespace trainwreck
