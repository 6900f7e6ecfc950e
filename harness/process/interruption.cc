#include "harness/process/interruption.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>

namespace trainwreck {
namespace {

std::atomic<int> g_signal{0};
int g_pipe[2] = {-1, -1};

}  // namespace

void PrepareForInterruption() {
  if (g_pipe[0] < 0 && pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
}

void Interrupt(int signal) {
  int none = 0;
  g_signal.compare_exchange_strong(none, signal);
  if (g_pipe[1] >= 0) {
    const int error = errno;
    [[maybe_unused]] const ssize_t ignored = write(g_pipe[1], "x", 1);
    errno = error;
  }
}

bool WasInterrupted() { return g_signal.load() != 0; }

int InterruptingSignal() { return g_signal.load(); }

int InterruptionDescriptor() { return g_pipe[0]; }

void AwaitLock(int descriptor) {
  while (flock(descriptor, LOCK_EX) != 0) {
    if (WasInterrupted()) throw Interrupted();
  }
}

}  // namespace trainwreck
