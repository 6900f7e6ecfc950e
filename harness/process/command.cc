#include "harness/process/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "harness/process/interruption.h"

namespace trainwreck {
namespace {

constexpr int kCannotStart = 127;

// GIT_DIR and its kind would send git to another repository than the folder's.
void ForgetGit() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "GIT_", 4) == 0) {
      names.emplace_back(*variable, std::strcspn(*variable, "="));
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

[[noreturn]] void Become(const std::vector<std::string>& arguments, const CommandOptions& options,
                         int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);  // what it starts is ended with it
  if (getppid() != parent) _exit(kCannotStart);
  dup2(output, STDOUT_FILENO);
  if (!options.log.empty() || options.captures_errors) dup2(output, STDERR_FILENO);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  ForgetGit();
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(kCannotStart);
  signal(SIGPIPE, SIG_DFL);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  _exit(kCannotStart);
}

struct Child {
  pid_t pid;
  bool ignores_interruption;
  bool is_told = false;  // once: a second signal would not let it end in order

  void TellOfInterruption() {
    if (is_told || ignores_interruption || !WasInterrupted()) return;
    is_told = true;
    kill(-pid, SIGTERM);
  }
};

// Reads until the other end is closed.
void Drain(int fd, Child& child, std::string& out) {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count > 0) {
      out.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return;
    }
    child.TellOfInterruption();
  }
}

// Until the child has ended or the time is up. Whether it has ended.
bool WaitFor(Child& child, double seconds) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0));
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "pidfd_open");
  bool has_ended = false;
  while (!has_ended) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (seconds > 0 && left <= 0) break;
    pollfd entry = {fd, POLLIN, 0};
    constexpr std::int64_t kLongest = 1000;  // a signal just before is seen then
    has_ended =
        poll(&entry, 1, static_cast<int>(seconds > 0 ? std::min(left, kLongest) : kLongest)) > 0;
    child.TellOfInterruption();
  }
  close(fd);
  return has_ended;
}

void End(Child& child) {
  constexpr double kGraceSeconds = 5;
  kill(-child.pid, SIGTERM);
  WaitFor(child, kGraceSeconds);
  kill(-child.pid, SIGKILL);  // also what outlived its parent
}

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& arguments, const CommandOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  int ends[2] = {-1, -1};
  int output = -1;
  if (options.log.empty()) {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "making a pipe");
    }
    output = ends[1];
  } else {
    output = open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (output < 0) throw std::system_error(errno, std::generic_category(), options.log);
  }
  const pid_t parent = getpid();
  Child child = {fork(), options.ignores_interruption};
  if (child.pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child.pid == 0) Become(arguments, options, output, parent);
  setpgid(child.pid, child.pid);  // here as well: it may not have come that far
  close(output);
  CommandResult result;
  if (ends[0] >= 0) {
    Drain(ends[0], child, result.out);
    close(ends[0]);
  }
  int status = 0;
  result.timed_out = !WaitFor(child, options.limit_seconds);
  if (result.timed_out) End(child);
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WasInterrupted() && !options.ignores_interruption) throw Interrupted();
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace trainwreck
