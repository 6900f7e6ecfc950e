#include "harness/process/spawn_client.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "harness/protocol/parse_json.h"

namespace trainwreck {
namespace {

constexpr int kShutdownSeconds = 10;  // for the kernel to bury what was killed

std::system_error Failure(const char* what) {
  return std::system_error(errno, std::generic_category(), what);
}

// The first part of a forked server's life: its socket becomes descriptor 3, all others close, and
// the terminal's signals no longer reach it.
void BecomeServer(int socket_fd, pid_t launcher) {
  setsid();
  // Until it serves, when the end of its socket tells.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(127);
  if (socket_fd == 3) {
    fcntl(3, F_SETFD, 0);
  } else {
    dup2(socket_fd, 3);
  }
  if (syscall(SYS_close_range, 4, ~0U, 0) != 0) {
    for (int fd = 4; fd < 4096; ++fd) close(fd);
  }
}

}  // namespace

SpawnConnection::~SpawnConnection() { close(fd_); }

bool SpawnConnection::Send(const Json& message, int attached_fd) {
  const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::size_t sent = 0;
  while (sent < line.size()) {
    iovec data{const_cast<char*>(line.data()) + sent, line.size() - sent};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (attached_fd >= 0 && sent == 0) {
      header.msg_control = control;
      header.msg_controllen = sizeof control;
      cmsghdr* attached = CMSG_FIRSTHDR(&header);
      attached->cmsg_level = SOL_SOCKET;
      attached->cmsg_type = SCM_RIGHTS;
      attached->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(attached), &attached_fd, sizeof(int));
    }
    const ssize_t got = sendmsg(fd_, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (got >= 0) {
      sent += static_cast<std::size_t>(got);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // The server may wait, too, until we have taken its answers.
      pollfd polled{fd_, POLLIN | POLLOUT, 0};
      poll(&polled, 1, -1);
      if ((polled.revents & POLLIN) != 0 && !ReadArrived()) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool SpawnConnection::Receive(std::vector<Json>& messages) {
  const bool is_open = ReadArrived();
  std::string line;
  while (lines_.Next(line)) {
    messages.push_back(TryParseJson(line));
  }
  return is_open;
}

bool SpawnConnection::ReadArrived() {
  char bytes[1 << 16];
  for (;;) {
    const ssize_t got = recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
      lines_.Append({bytes, static_cast<std::size_t>(got)});
      if (got < static_cast<ssize_t>(sizeof bytes)) return true;
    } else if (got == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }
}

std::unique_ptr<SpawnServerProcess> SpawnServerProcess::Fork(bool keeps_output,
                                                             const std::function<void()>& at_end) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw Failure("socketpair");
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Failure("fork");
  if (pid == 0) {
    const int null = open("/dev/null", O_RDWR);
    // It must not hold the harness's pipes open.
    for (int fd = 0; fd <= (keeps_output ? 0 : 2); ++fd) dup2(null, fd);
    BecomeServer(ends[1], launcher);
    prctl(PR_SET_NAME, "trainwreck-spwn");
    const int code = ServeSpawns(3, nullptr);
    if (at_end) {
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      at_end();
    }
    _exit(code);
  }
  close(ends[1]);
  return std::unique_ptr<SpawnServerProcess>(new SpawnServerProcess(ends[0], pid));
}

std::unique_ptr<SpawnServerProcess> SpawnServerProcess::Exec(
    const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
    const std::string& folder, const std::string& stderr_path) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw Failure("socketpair");
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Failure("fork");
  if (pid == 0) {
    const int null = open("/dev/null", O_RDONLY);
    const int out = open(stderr_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    dup2(null, 0);
    dup2(out >= 0 ? out : null, 1);
    dup2(out >= 0 ? out : null, 2);
    BecomeServer(ends[1], launcher);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    setenv(kSpawnFdVariable, "3", 1);
    std::vector<char*> arguments;
    for (const std::string& argument : command) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    char flag[] = "--fork-server";
    arguments.push_back(flag);
    arguments.push_back(nullptr);
    if (folder.empty() || chdir(folder.c_str()) == 0) execvp(arguments[0], arguments.data());
    const std::string message =
        std::string("cannot start ") + arguments[0] + ": " + std::strerror(errno) + "\n";
    [[maybe_unused]] const ssize_t ignored = write(2, message.data(), message.size());
    _exit(127);
  }
  close(ends[1]);
  return std::unique_ptr<SpawnServerProcess>(new SpawnServerProcess(ends[0], pid));
}

SpawnServerProcess::~SpawnServerProcess() {
  shutdown(connection_.fd(), SHUT_RDWR);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kShutdownSeconds);
  for (;;) {
    const pid_t got = waitpid(pid_, nullptr, WNOHANG);
    if (got == pid_ || (got < 0 && errno != EINTR)) return;
    if (std::chrono::steady_clock::now() > deadline) break;
    poll(nullptr, 0, 1);
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool SpawnServerProcess::AwaitReady(int timeout_ms, int stop_fd) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          deadline - std::chrono::steady_clock::now())
                          .count();
    if (left <= 0) return false;
    pollfd polled[2] = {{connection_.fd(), POLLIN, 0}, {stop_fd, POLLIN, 0}};
    poll(polled, 2, static_cast<int>(left));
    if (polled[1].revents != 0) return false;
    if (polled[0].revents == 0) continue;
    std::vector<Json> messages;
    const bool open = connection_.Receive(messages);
    for (const Json& message : messages) return message.is_object() && message.contains("ready");
    if (!open) return false;
  }
}

std::unique_ptr<SpawnConnection> SpawnServerProcess::OpenGuard() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw Failure("socketpair");
  auto guard = std::make_unique<SpawnConnection>(ends[0]);
  const bool sent = connection_.Send({{"guard", true}}, ends[1]);
  const int error = errno;
  close(ends[1]);
  if (!sent) throw std::system_error(error, std::generic_category(), "the spawn server is gone");
  return guard;
}

}  // namespace trainwreck
