#include "trainer/ranks/forked_ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>

namespace trainwreck {
namespace {

struct Child {
  pid_t pid = -1;
  int pipe = -1;
  bool over = false;
};

void WriteAll(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(fd, text.data() + done, text.size() - done);
    if (written <= 0) return;
    done += written;
  }
}

[[noreturn]] void ChildMain(int fd, int rank, const std::function<std::string(int)>& body) {
  int code = 0;
  try {
    WriteAll(fd, body(rank));
  } catch (const std::exception& error) {
    WriteAll(fd, error.what());
    code = 1;
  }
  _exit(code);
}

Child Start(int rank, const std::function<std::string(int)>& body) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  Child child;
  child.pid = fork();
  if (child.pid < 0) throw std::runtime_error("fork");
  if (child.pid == 0) {
    close(ends[0]);
    ChildMain(ends[1], rank, body);
  }
  close(ends[1]);
  child.pipe = ends[0];
  return child;
}

// Takes in output; at its end, the child's status.
void Drain(Child& child, RankEnd& end, double now_s) {
  char buffer[4096];
  const ssize_t got = read(child.pipe, buffer, sizeof buffer);
  if (got > 0) {
    end.output.append(buffer, got);
    return;
  }
  int status = 0;
  waitpid(child.pid, &status, 0);
  close(child.pipe);
  child.over = true;
  end.seconds = now_s;
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
}

}  // namespace

std::vector<RankEnd> RunForked(int world_size, const std::function<std::string(int)>& body,
                               double limit_s) {
  const auto began = std::chrono::steady_clock::now();
  const auto elapsed_s = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  std::vector<Child> children;
  std::vector<RankEnd> ends(world_size);
  for (int rank = 0; rank < world_size; ++rank) children.push_back(Start(rank, body));
  bool killed = false;
  while (true) {
    std::vector<pollfd> waiting;
    for (const Child& child : children) {
      waiting.push_back({child.over ? -1 : child.pipe, POLLIN, 0});
    }
    bool any = false;
    for (const Child& child : children) any = any || !child.over;
    if (!any) break;
    const double left_s = limit_s - elapsed_s();
    poll(waiting.data(), waiting.size(), killed ? -1 : std::max(0, static_cast<int>(left_s * 1e3)));
    for (int rank = 0; rank < world_size; ++rank) {
      if (!children[rank].over && waiting[rank].revents != 0) {
        Drain(children[rank], ends[rank], elapsed_s());
        if (children[rank].over && killed) ends[rank].exit_code = 99;
      }
    }
    if (!killed && elapsed_s() > limit_s) {
      killed = true;
      for (const Child& child : children) {
        if (!child.over) kill(child.pid, SIGKILL);
      }
    }
  }
  return ends;
}

ScratchFolder::ScratchFolder() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string name = std::string(base != nullptr ? base : "/tmp") + "/scratch.XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("making " + name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace trainwreck
