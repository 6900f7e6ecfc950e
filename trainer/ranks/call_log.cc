#include "trainer/ranks/call_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace trainwreck {
namespace {

constexpr std::size_t kBytes = static_cast<std::size_t>(CallLog::kCalls) * CallLog::kLineBytes;
constexpr std::size_t kLongestText = 48;  // of an operation, a shape, a type: so that a line fits

std::string Seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", seconds);
  return text;
}

}  // namespace

CallLog::CallLog(const std::string& path, std::function<double()> clock)
    : clock_(std::move(clock)) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw std::runtime_error("making " + path + ": " + std::strerror(errno));
  // Without the room, a later write to the mapped memory would be a SIGBUS.
  const int error = posix_fallocate(fd, 0, kBytes);
  void* lines =
      error != 0 ? MAP_FAILED : mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (lines == MAP_FAILED) {
    throw std::runtime_error("making " + path + ": " + std::strerror(error != 0 ? error : errno));
  }
  lines_ = static_cast<char*>(lines);
  for (int call = 0; call < kCalls; ++call) WriteLine(call, "");
}

CallLog::~CallLog() { munmap(lines_, kBytes); }

void CallLog::Begin(int call, int step, const std::string& op, const std::string& shape,
                    const std::string& dtype) {
  const auto quoted = [](const std::string& text) {
    return "\"" + text.substr(0, kLongestText) + "\"";
  };
  current_ = "{\"call\":" + std::to_string(call) + ",\"step\":" + std::to_string(step) +
             ",\"op\":" + quoted(op) + ",\"shape\":" + quoted(shape) +
             ",\"dtype\":" + quoted(dtype) + ",\"began\":" + Seconds(clock_()) + ",\"ended\":";
  WriteLine(call, current_ + "null}");
}

void CallLog::End(int call, bool failed) {
  WriteLine(call, current_ + (failed ? "\"failed\"" : Seconds(clock_())) + "}");
}

void CallLog::WriteLine(int call, const std::string& text) {
  char* line = lines_ + static_cast<std::ptrdiff_t>(call % kCalls) * kLineBytes;
  const std::size_t length = std::min<std::size_t>(text.size(), kLineBytes - 1);
  std::memcpy(line, text.data(), length);
  std::memset(line + length, ' ', kLineBytes - 1 - length);
  line[kLineBytes - 1] = '\n';
}

}  // namespace trainwreck
