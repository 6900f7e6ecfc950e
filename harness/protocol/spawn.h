// Starting the processes of runs. A spawn server is a small process between the launcher and the ranks: it
// forks them on request, reports their ends, and kills every descendant when the launcher's end of its socket
// closes. The reference trainer is one (`trainwreck-trainer --fork-server`: a rank is a fork of a warm
// process); for any other command the launcher forks one of its own that execs.
//
// Wire: one JSON object a line over a stream socket.
//   launcher -> server  {"spawn":7,"environment":{..},"command":[..],"stdout":"path","stderr":"path","group":0}
//                       {"kill":7,"signal":9}            the process group of spawn 7
//                       {"reap":true}                    kill every remaining descendant, answer {"reaped":n}
//   server -> launcher  {"ready":true}
//                       {"spawned":7,"pid":4711} or {"spawned":7,"error":"No such file or directory: x"}
//                       {"exited":7,"code":0,"signal":0,"peak_memory_bytes":1,"cpu_seconds":0.1}
//                       {"orphan":4712}                  a descendant that outlived its run; it was killed
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace trainwreck {

struct SpawnRequest {
  int id = 0;
  std::vector<std::string> command;  // empty: call the server's own child_main
  std::map<std::string, std::string> environment;  // over the server's own
  std::string stdout_path;
  std::string stderr_path;
};

using ChildMain = std::function<int(const SpawnRequest&)>;

// Serves until the socket closes, then kills every descendant and returns 0. Must be called from a process with
// one thread. Each child is a process group of its own, gets SIGKILL when the server dies, and leaves with
// _exit(child_main(request)) or by exec.
int ServeSpawns(int socket_fd, const ChildMain& child_main);

}  // namespace trainwreck
