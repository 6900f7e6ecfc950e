#include "harness/launch/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kKeptBytes = 1 << 20;
constexpr std::int64_t kLastWordsBytes = 2048;
constexpr int kLastLines = 3;

[[noreturn]] void Fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

RunFolder::RunFolder(std::string path) : path_(std::move(path)) {
  const std::string checkpoint_folder = checkpoints();
  if (mkdir(path_.c_str(), 0755) != 0) {
    if (errno == ENOENT) {
      fs::create_directories(path_);
    } else if (errno == EEXIST) {
      // Only what a run leaves: the folder may hold a stranger's files.
      fs::remove_all(checkpoint_folder);
      fs::remove_all(path_ + "/work");  // of programs behind an adapter
      for (const auto& entry : fs::directory_iterator(path_)) {
        const std::string name = entry.path().filename();
        for (const char* prefix :
             {"plan.", "environment.", "rendezvous.", "rank", "launcher.jsonl"}) {
          if (name.rfind(prefix, 0) == 0) fs::remove(entry.path());
        }
      }
    } else {
      Fail("cannot create " + path_);
    }
  }
  if (mkdir(checkpoint_folder.c_str(), 0755) != 0 && errno != EEXIST) {
    Fail("cannot create " + checkpoint_folder);
  }
}

std::string RunFolder::plan(const std::string& phase, int attempt) const {
  return fmt::format("{}/plan.{}.{}.json", path_, phase, attempt);
}

std::string RunFolder::rendezvous(const std::string& phase, int attempt) const {
  return fmt::format("{}/rendezvous.{}.{}", path_, phase, attempt);
}

std::string RunFolder::stdout_of(int rank) const {
  return fmt::format("{}/rank{}.stdout", path_, rank);
}

std::string RunFolder::stderr_of(int rank) const {
  return fmt::format("{}/rank{}.stderr", path_, rank);
}

std::int64_t RunFolder::bytes() const {
  std::int64_t total = 0;
  std::error_code error;
  fs::recursive_directory_iterator entry(path_, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    struct stat status;
    if (lstat(entry->path().c_str(), &status) == 0) total += std::int64_t{status.st_blocks} * 512;
    entry.increment(error);
  }
  return total;
}

void RunFolder::TruncateLargeFiles() const {
  std::error_code error;
  fs::recursive_directory_iterator entry(path_, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    std::error_code ignored;
    if (fs::is_regular_file(entry->symlink_status(ignored)) &&
        static_cast<std::int64_t>(fs::file_size(entry->path(), ignored)) > kKeptBytes) {
      fs::resize_file(entry->path(), kKeptBytes, ignored);
    }
    entry.increment(error);
  }
}

bool RunFolder::DiskIsFull() const {
  struct statvfs status;
  return statvfs(path_.c_str(), &status) == 0 &&
         static_cast<std::int64_t>(status.f_bavail * status.f_frsize) < kKeptBytes / 16;
}

void WriteFile(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) Fail("cannot write " + path);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = write(fd, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      close(fd);
      errno = error;
      Fail("cannot write " + path);
    }
    done += static_cast<std::size_t>(got);
  }
  if (close(fd) != 0) Fail("cannot write " + path);
}

std::int64_t FileSize(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? std::int64_t{status.st_size} : 0;
}

std::string LastWords(const std::string& path, std::int64_t begin) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  struct stat status;
  std::string text;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > begin) {
    const std::int64_t from = std::max<std::int64_t>(begin, status.st_size - kLastWordsBytes);
    text.resize(static_cast<std::size_t>(status.st_size - from));
    const ssize_t got = pread(fd, text.data(), text.size(), from);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  close(fd);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  std::size_t start = text.size();
  for (int line = 0; line < kLastLines && start != std::string::npos && start > 0; ++line) {
    start = text.rfind('\n', start - 1);
  }
  if (start != std::string::npos && start < text.size() && text[start] == '\n') {
    text.erase(0, start + 1);
  }
  // Through JSON and back: bytes that are no UTF-8 become replacement characters.
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace trainwreck
