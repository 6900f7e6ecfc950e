#include "harness/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "harness/process/proc_folder.h"

namespace trainwreck {
namespace {

constexpr int kGuardGraceMs = 5000;  // for guards to end their runs before they are killed

constexpr int kLongestPauseMs = 500;  // between two looks at what does not end

// By which a server tells its guards to end: nobody sends it to a whole group or job.
int EndSignal() { return SIGRTMIN; }

using Clock = std::chrono::steady_clock;

// Closes, or marks as close-on-exec, all file descriptors from `first` on.
void CloseFrom(unsigned first, unsigned flags) {
  if (syscall(SYS_close_range, first, ~0U, flags) == 0) return;
  const long limit = std::min(sysconf(_SC_OPEN_MAX), 65536L);  // a kernel before 5.9
  for (long fd = first; fd < limit; ++fd) {
    if (flags == 0) {
      close(static_cast<int>(fd));
    } else {
      fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
    }
  }
}

void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

class SpawnServer {
 public:
  SpawnServer(int socket_fd, const ChildMain& child_main)
      : socket_(socket_fd), child_main_(child_main) {}

  int Serve();

 private:
  bool ReadSocket();  // false: closed
  void Handle(const Json& message);
  void StartGuard();
  void Spawn(const SpawnRequest& request);
  [[noreturn]] void RunChild(const SpawnRequest& request, int out, int err, int null,
                             int error_pipe);
  void ReapExited();
  bool WaitOne(bool report);  // false: no child has ended
  void KillStrays();
  int KillDescendants(int grace_ms, bool report);
  int KillElsewhere(bool report);
  void Send(const Json& message);
  bool HasChildren() const;

  int socket_;
  const ChildMain& child_main_;
  int signals_ = -1;
  pid_t pid_ = 0;
  bool closed_ = false;
  bool guard_was_killed_ = false;
  LineBuffer lines_;
  std::vector<int> received_;     // file descriptors that came with messages
  std::map<pid_t, int> spawned_;  // running -> id
  std::map<int, pid_t> pid_of_;   // id -> running
  std::set<pid_t> groups_;        // of all that was ever spawned here
  std::set<pid_t> guards_;
  std::set<std::string> runs_;  // entries of the environment of programs that were spawned here
};

int SpawnServer::Serve() {
  pid_ = getpid();
  // The launcher asked for SIGKILL at its death for the time before this: from now on its end of
  // the socket tells, and descendants are cleaned up first.
  prctl(PR_SET_PDEATHSIG, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU}) {
    signal(number, SIG_IGN);  // a Ctrl-C is the launcher's to handle
  }
  signal(SIGCHLD, SIG_DFL);
  sigset_t heard;
  sigemptyset(&heard);
  sigaddset(&heard, SIGCHLD);
  sigaddset(&heard, EndSignal());
  sigprocmask(SIG_BLOCK, &heard, nullptr);
  signals_ = signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC);
  fcntl(socket_, F_SETFD, FD_CLOEXEC);
  Send({{"ready", true}});
  while (!closed_) {
    pollfd polled[2] = {{socket_, POLLIN, 0}, {signals_, POLLIN, 0}};
    if (poll(polled, 2, -1) < 0 && errno != EINTR) break;
    if (polled[1].revents != 0) ReapExited();
    if (polled[0].revents != 0 && !ReadSocket()) break;
  }
  // Only a guard knows which runs a daemon may have started processes for.
  for (const pid_t guard : guards_) kill(guard, EndSignal());
  KillDescendants(guards_.empty() ? 0 : kGuardGraceMs, /*report=*/false);
  close(signals_);
  close(socket_);
  return 0;
}

bool SpawnServer::ReadSocket() {
  char bytes[1 << 16];
  iovec data{bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::vector<int> fds(count);
    std::memcpy(fds.data(), CMSG_DATA(header), count * sizeof(int));
    received_.insert(received_.end(), fds.begin(), fds.end());
  }
  lines_.Append({bytes, static_cast<std::size_t>(got)});
  std::string line;
  while (lines_.Next(line)) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object()) Handle(json);
  }
  return true;
}

void SpawnServer::Handle(const Json& message) {
  if (message.contains("guard")) {
    StartGuard();
  } else if (message.contains("spawn")) {
    Spawn(SpawnRequestFromJson(message));
  } else if (message.contains("kill")) {
    // Only while the leader is not waited for: after that its group's number may be another's.
    const auto found = pid_of_.find(message["kill"].get<int>());
    if (found != pid_of_.end()) kill(-found->second, message.value("signal", SIGKILL));
  } else if (message.contains("reap")) {
    const int orphans = KillDescendants(message.value("grace_ms", 0), /*report=*/true);
    groups_.clear();  // none has a member left: their numbers are free for others
    Send({{"reaped", orphans}});
  }
}

void SpawnServer::StartGuard() {
  if (received_.empty()) return;
  const int guard_socket = received_.front();
  received_.erase(received_.begin());
  const pid_t pid = fork();
  if (pid == 0) {
    // The guard must hold no other socket, or their launcher's death would go unseen.
    if (guard_socket != 3) dup2(guard_socket, 3);
    CloseFrom(4, 0);
    prctl(PR_SET_NAME, "trainwreck-guar");
    _exit(SpawnServer(3, child_main_).Serve());
  }
  close(guard_socket);  // after a failed fork the launcher sees the end of its socket
  if (pid > 0) guards_.insert(pid);
}

void SpawnServer::Spawn(const SpawnRequest& request) {
  auto refuse = [&](int error, const std::string& what) {
    Send({{"spawned", request.id}, {"error", std::string(std::strerror(error)) + ": " + what}});
  };
  if (request.command.empty() && !child_main_) return refuse(EINVAL, "a spawn without a command");
  int fds[3] = {-1, -1, -1};
  const std::string paths[3] = {request.stdout_path, request.stderr_path, ""};
  auto close_all = [&] {
    for (const int fd : fds) {
      if (fd >= 0) close(fd);
    }
  };
  for (int i = 0; i < 3; ++i) {
    const char* path = paths[i].empty() ? "/dev/null" : paths[i].c_str();
    fds[i] = request.inherits_output && i < 2
                 ? fcntl(i + 1, F_DUPFD_CLOEXEC, 3)
                 : open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fds[i] < 0) {
      const int error = errno;
      close_all();
      return refuse(error, path);
    }
  }
  int error_pipe[2] = {-1, -1};  // closes at a successful exec
  if (!request.command.empty() && pipe2(error_pipe, O_CLOEXEC) != 0) {
    const int error = errno;
    close_all();
    return refuse(error, "pipe");
  }
  // A signal for the child that comes before it has its own handlers must wait, not vanish in ours.
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t pid = fork();
  const int fork_error = errno;
  if (pid == 0) RunChild(request, fds[0], fds[1], fds[2], error_pipe[1]);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close_all();
  if (error_pipe[1] >= 0) close(error_pipe[1]);
  if (pid < 0) {
    if (error_pipe[0] >= 0) close(error_pipe[0]);
    return refuse(fork_error, "fork");
  }
  setpgid(pid, pid);  // here and in the child: whoever comes first
  int exec_error = 0;
  if (error_pipe[0] >= 0) {
    const ssize_t got = read(error_pipe[0], &exec_error, sizeof exec_error);
    close(error_pipe[0]);
    if (got == sizeof exec_error) {
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      return refuse(exec_error, request.command[0]);
    }
  }
  if (const auto run = request.environment.find(kRunVariable);
      run != request.environment.end() && !request.command.empty()) {
    runs_.insert(run->first + "=" + run->second);
  }
  spawned_[pid] = request.id;
  groups_.insert(pid);
  pid_of_[request.id] = pid;
  Send({{"spawned", request.id}, {"pid", pid}});
}

void SpawnServer::RunChild(const SpawnRequest& request, int out, int err, int null,
                           int error_pipe) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != pid_) _exit(127);  // the server died before the line above
  ResetSignals();
  dup2(null, 0);
  dup2(out, 1);
  dup2(err, 2);
  if (request.file_bytes > 0) {
    const auto bytes = static_cast<rlim_t>(request.file_bytes);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  unsetenv(kSpawnFdVariable);
  for (const auto& [name, value] : request.environment) setenv(name.c_str(), value.c_str(), 1);
  if (!request.command.empty()) {
    CloseFrom(3, CLOSE_RANGE_CLOEXEC);
    std::vector<char*> arguments;
    for (const std::string& argument : request.command) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    if (request.folder.empty() || chdir(request.folder.c_str()) == 0) {
      execvp(arguments[0], arguments.data());
    }
    const int error = errno;
    [[maybe_unused]] const ssize_t ignored = write(error_pipe, &error, sizeof error);
    _exit(127);
  }
  CloseFrom(3, 0);
  prctl(PR_SET_NAME, "trainwreck-rank");
  int code = 1;
  try {
    code = child_main_(request);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::fflush(nullptr);
  _exit(code);
}

void SpawnServer::ReapExited() {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) > 0) {
    closed_ |= static_cast<int>(info.ssi_signo) == EndSignal();
  }
  while (WaitOne(/*report=*/true)) {
  }
  if (guard_was_killed_) KillStrays();
}

bool SpawnServer::WaitOne(bool report) {
  int status = 0;
  rusage usage{};
  const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
  if (pid <= 0) return pid < 0 && errno == EINTR;
  if (guards_.erase(pid) > 0) {
    if (WIFSIGNALED(status)) guard_was_killed_ = true;
    return true;
  }
  const auto found = spawned_.find(pid);
  if (found == spawned_.end()) return true;  // an orphan that ended by itself
  auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  if (report) {
    Send({{"exited", found->second},
          {"code", WIFEXITED(status) ? WEXITSTATUS(status) : -1},
          {"signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0},
          {"peak_memory_bytes", std::int64_t{usage.ru_maxrss} * 1024},
          {"cpu_seconds", seconds(usage.ru_utime) + seconds(usage.ru_stime)}});
  }
  pid_of_.erase(found->second);
  spawned_.erase(found);
  return true;
}

// Somebody killed a guard: its descendants are now this server's, and nobody asks about them any
// more.
void SpawnServer::KillStrays() {
  for (const pid_t pid : Descendants(pid_)) {
    const auto info = ReadProcessInfo(pid);
    if (info && info->parent == pid_ && !guards_.contains(pid) && !spawned_.contains(pid)) {
      kill(pid, SIGKILL);  // its children become ours, and their turn comes with the next SIGCHLD
    }
  }
}

bool SpawnServer::HasChildren() const {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

// A subreaper without children has no descendants: so the usual case costs two system calls.
int SpawnServer::KillDescendants(int grace_ms, bool report) {
  std::set<pid_t> orphans;
  const auto deadline = Clock::now() + std::chrono::milliseconds(grace_ms);
  int pause_ms = 5;
  for (;;) {
    while (WaitOne(report)) {
    }
    if (!HasChildren()) return static_cast<int>(orphans.size()) + KillElsewhere(report);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd polled{signals_, POLLIN, 0};
    if (left > 0) {
      poll(&polled, 1, static_cast<int>(left));
    } else {
      const std::vector<pid_t> found = Descendants(pid_);
      for (const pid_t pid : found) {
        const auto info = ReadProcessInfo(pid);
        if (!info) continue;
        if (report && !spawned_.contains(pid) && orphans.insert(pid).second) {
          Send({{"orphan", pid}, {"command", CommandOf(pid)}});
        }
        // The group at once: no fork of a member can slip through between two looks at /proc. A
        // group that none of ours leads is left alone: it may be another run's.
        if (groups_.contains(info->group) ||
            std::find(found.begin(), found.end(), info->group) != found.end()) {
          kill(-info->group, SIGKILL);
        }
        kill(pid, SIGKILL);
      }
      // Each end is told at once. What waits for a file server that is away cannot end yet.
      poll(&polled, 1, pause_ms);
      pause_ms = std::min(2 * pause_ms, kLongestPauseMs);
    }
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) > 0) {
    }
  }
}

// What daemons started for a launcher of ours.
int SpawnServer::KillElsewhere(bool report) {
  std::set<pid_t> killed;
  const auto deadline = Clock::now() + std::chrono::seconds(2);  // what cannot be killed must wait
  for (const std::string& run : runs_) {
    std::vector<int> found;
    while (!(found = ProcessesWith({run})).empty() && Clock::now() < deadline) {
      for (const pid_t pid : found) {
        if (report && killed.insert(pid).second) {
          Send({{"orphan", pid}, {"command", CommandOf(pid)}});
        }
        kill(pid, SIGKILL);
      }
      poll(nullptr, 0, 5);
    }
  }
  runs_.clear();
  return static_cast<int>(killed.size());
}

void SpawnServer::Send(const Json& message) {
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t got = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      closed_ = true;
      return;
    }
    sent += static_cast<std::size_t>(got);
  }
}

}  // namespace

int ServeSpawns(int socket_fd, const ChildMain& child_main) {
  setsid();  // fails for a group leader, which the launcher has made a session's leader already
  return SpawnServer(socket_fd, child_main).Serve();
}

}  // namespace trainwreck
