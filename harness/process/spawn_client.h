// The launcher's ends of the sockets to spawn servers (harness/process/spawn.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/process/spawn.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// One socket to a spawn server. Closing it makes the server kill all that it started.
class SpawnConnection {
 public:
  explicit SpawnConnection(int fd) : fd_(fd) {}
  ~SpawnConnection();
  SpawnConnection(const SpawnConnection&) = delete;
  SpawnConnection& operator=(const SpawnConnection&) = delete;

  int fd() const { return fd_; }
  // False when the server is gone. `attached_fd` travels with the message. Messages that arrive
  // while it waits for room are kept for `Receive`: both sides must not wait for each other.
  bool Send(const Json& message, int attached_fd = -1);
  // Reads everything that has arrived, without waiting; false when the server is gone.
  bool Receive(std::vector<Json>& messages);

 private:
  bool ReadArrived();  // into `lines_`, without waiting; false when the server is gone

  int fd_;
  LineBuffer lines_;
};

// A spawn server that is a child of this process. Its destructor returns when the server and all
// its descendants are gone.
class SpawnServerProcess {
 public:
  // A server forked from this process, which must have one thread: it can only exec. With
  // `keeps_output` it has this process's standard output and error, for requests that inherit them.
  // It calls `at_end` when it has killed all that it started, also if this process was killed.
  static std::unique_ptr<SpawnServerProcess> Fork(bool keeps_output = false,
                                                  const std::function<void()>& at_end = nullptr);
  // `command --fork-server` in `folder` (empty: here); what it prints goes to `stderr_path`.
  static std::unique_ptr<SpawnServerProcess> Exec(
      const std::vector<std::string>& command,
      const std::map<std::string, std::string>& environment, const std::string& folder,
      const std::string& stderr_path);
  ~SpawnServerProcess();

  SpawnConnection& connection() { return connection_; }
  // Waits until the server says that it is ready; false when it ended, said something else,
  // `stop_fd` became readable or the time is over.
  bool AwaitReady(int timeout_ms, int stop_fd = -1);
  // A new server for one run.
  std::unique_ptr<SpawnConnection> OpenGuard();  // throws std::system_error

 private:
  SpawnServerProcess(int fd, int pid) : connection_(fd), pid_(pid) {}
  SpawnConnection connection_;
  int pid_;
};

}  // namespace trainwreck
