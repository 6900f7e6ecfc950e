#include "harness/targets/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "harness/protocol/late_bytes.h"

namespace trainwreck {
namespace {

constexpr std::int64_t kRemembered = 64;
constexpr std::int64_t kAtOnce = 4 << 20;

}  // namespace

GrowingFile::GrowingFile(std::string path, bool skip_existing) : path_(std::move(path)) {
  if (!skip_existing) return;
  fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) return;
  offset_ = std::max<std::int64_t>(0, lseek(fd_, 0, SEEK_END));
  Remember();
}

GrowingFile::~GrowingFile() {
  if (fd_ >= 0) close(fd_);
}

GrowingFile::GrowingFile(GrowingFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      offset_(other.offset_),
      before_(std::move(other.before_)) {}

void GrowingFile::Remember() {
  before_.resize(static_cast<std::size_t>(std::min(kRemembered, offset_)));
  const auto size = static_cast<std::int64_t>(before_.size());
  if (pread(fd_, before_.data(), before_.size(), offset_ - size) != size) before_.clear();
}

bool GrowingFile::IsSameFile() const {
  struct stat opened, named;
  if (fstat(fd_, &opened) != 0 || stat(path_.c_str(), &named) != 0) return true;  // read it out
  if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev) return false;
  if (opened.st_size < offset_) return false;
  std::string now(before_.size(), '\0');
  const auto size = static_cast<std::int64_t>(now.size());
  return pread(fd_, now.data(), now.size(), offset_ - size) != size || now == before_;
}

bool GrowingFile::Read(std::string& bytes, bool& begun_anew, Zeros zeros) {
  begun_anew = false;
  if (fd_ >= 0 && !IsSameFile()) {
    close(fd_);
    fd_ = -1;
    offset_ = 0;
    begun_anew = true;
  }
  if (fd_ < 0) {
    fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (fd_ < 0) return false;
    if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {  // a FIFO or a device
      close(fd_);
      fd_ = -1;
      return false;
    }
  }
  const std::int64_t begin = offset_;
  char buffer[1 << 16];
  ssize_t got;
  while (offset_ - begin < kAtOnce && (got = pread(fd_, buffer, sizeof buffer, offset_)) > 0) {
    const void* zero = zeros == Zeros::kAreBytes
                           ? nullptr
                           : std::memchr(buffer, '\0', static_cast<std::size_t>(got));
    if (zero == buffer) {
      const auto now = std::chrono::steady_clock::now();
      if (!zeros_since_) zeros_since_ = now;
      const bool may_change = now - *zeros_since_ < kLateBytes;
      if (may_change && zeros == Zeros::kAreLeft) break;
      if (may_change) {
        std::this_thread::sleep_for(kLatePause);
        continue;
      }
    } else if (zero != nullptr) {
      got = static_cast<const char*>(zero) - buffer;
    }
    zeros_since_.reset();
    bytes.append(buffer, static_cast<std::size_t>(got));
    offset_ += got;
  }
  if (offset_ == begin) return false;
  Remember();
  return true;
}

}  // namespace trainwreck
