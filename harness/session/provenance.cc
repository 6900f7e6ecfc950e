#include "harness/session/provenance.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace trainwreck {
namespace {

// Git's standard output when it succeeds. It takes no locks, so it disturbs nobody's checkout.
std::optional<std::string> AskGit(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"git", "--no-optional-locks"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "git", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; failed == 0 && (count = read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (count > 0) {
      text.append(buffer, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      break;
    }
  }
  close(ends[0]);
  if (failed != 0) return std::nullopt;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

CommitState CurrentCommit() {
  CommitState state;
  const auto hash = AskGit({"rev-parse", "--verify", "--quiet", "HEAD"});
  if (!hash) return state;
  state.hash = FirstLine(*hash);
  // A file that nobody added yet changes nothing for the commit; our own output would be one.
  const auto changes = AskGit({"status", "--porcelain", "--untracked-files=no"});
  state.is_dirty = !changes || !changes->empty();
  return state;
}

std::string ResolveRevision(const std::string& revision) {
  if (revision.empty() || revision.front() == '-') return "";
  const auto hash = AskGit({"rev-parse", "--verify", "--quiet", revision + "^{commit}"});
  return hash ? FirstLine(*hash) : "";
}

std::map<std::string, std::string> MachineEnvironment() {
  std::map<std::string, std::string> environment;
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; environment.empty() && std::getline(cpus, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    if (value != std::string::npos) environment["cpu"] = line.substr(value);
  }
  if (utsname system; environment.empty() && uname(&system) == 0) {
    environment["cpu"] = system.machine;
  }
  std::ifstream driver("/proc/driver/nvidia/version");
  if (std::string line; std::getline(driver, line)) environment["driver"] = line;
  return environment;
}

}  // namespace trainwreck
