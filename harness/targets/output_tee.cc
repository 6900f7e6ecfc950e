#include "harness/targets/output_tee.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace trainwreck {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAtOnce = 64;  // pieces, so that whoever calls can do other things as well

void CloseFile(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

OutputTee::OutputTee(int fd, const std::string& copy) : fd_(fd) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  }
  source_ = ends[0];
  fcntl(source_, F_SETFL, O_NONBLOCK);
  sink_ = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  dup2(ends[1], fd);
  close(ends[1]);
  copy_ = open(copy.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

OutputTee::~OutputTee() {
  Release();
  CloseFile(source_);
  CloseFile(sink_);
  CloseFile(copy_);
}

void OutputTee::Release() {
  if (fd_ >= 0 && sink_ >= 0) dup2(sink_, fd_);
  fd_ = -1;
}

pollfd OutputTee::Polled() const {
  if (text_.empty()) return {source_, POLLIN, 0};
  return {sink_, POLLOUT, 0};
}

// Whether something has come.
bool OutputTee::Fetch() {
  char bytes[1 << 14];
  const ssize_t got = source_ >= 0 ? read(source_, bytes, sizeof bytes) : 0;
  if (got <= 0) return false;
  text_.assign(bytes, static_cast<std::size_t>(got));
  const char* rest = bytes;
  for (ssize_t left = got, wrote; copy_ >= 0 && left > 0; left -= wrote, rest += wrote) {
    wrote = write(copy_, rest, static_cast<std::size_t>(left));
    if (wrote <= 0) break;  // a full disk takes nothing from what is passed on
  }
  return true;
}

// Whether there was something, and it could be passed on.
bool OutputTee::PassSome(int milliseconds) {
  if (text_.empty() && !Fetch()) return false;
  pollfd polled{sink_, POLLOUT, 0};
  if (poll(&polled, 1, milliseconds) != 1) return false;
  // A pipe that can be written takes so many bytes without waiting.
  const ssize_t wrote = write(sink_, text_.data(), std::min<std::size_t>(text_.size(), PIPE_BUF));
  if (wrote > 0) {
    text_.erase(0, static_cast<std::size_t>(wrote));
  } else if (wrote < 0 && errno != EINTR && errno != EAGAIN) {
    CloseFile(source_);  // the reader is gone: the writers are told by SIGPIPE, as without this
    text_.clear();
  }
  return true;
}

void OutputTee::Pass() {
  for (int i = 0; i < kAtOnce && PassSome(0); ++i) {
  }
}

void OutputTee::PassAll(int milliseconds) {
  const auto give_up = Clock::now() + std::chrono::milliseconds(milliseconds);
  int left = milliseconds;
  while (PassSome(left)) {
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - Clock::now());
    left = static_cast<int>(std::max<std::int64_t>(0, rest.count()));
  }
}

}  // namespace trainwreck
