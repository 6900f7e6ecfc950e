#include "harness/launch/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "harness/process/rank_guards.h"
#include "harness/protocol/json.h"
#include "harness/protocol/rank_files.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kKeptBytes = 1 << 20;
constexpr std::int64_t kTailBytes = 64 << 10;  // a backtrace behind the last words may be long
constexpr std::size_t kLastWordsBytes = 2048;
constexpr std::size_t kLastLines = 3;

[[noreturn]] void Fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A line of a backtrace: where a program was when it ended, not why. As LibTorch ("frame #3: ..."),
// gdb and the sanitizers ("#3 0x..."), glog ("@ 0x...") and glibc ("./program(+0x12) [0x...]")
// write them. Python's stand before the reason.
bool IsBacktrace(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return true;  // a blank line
  line.remove_prefix(begin);
  const auto starts = [&](std::string_view word) { return line.substr(0, word.size()) == word; };
  const auto is_digit = [&](std::size_t at) {
    return at < line.size() && line[at] >= '0' && line[at] <= '9';
  };
  if (starts("frame #") || starts("Exception raised from ")) return true;
  if (starts("@ 0x") || (starts("@") && line.find(" 0x") != std::string_view::npos)) return true;
  if (line[0] == '#' && is_digit(1)) return line.find(" 0x") != std::string_view::npos;
  return line.back() == ']' && line.find("[0x") != std::string_view::npos &&
         line.find("(+0x") != std::string_view::npos;
}

// What PyTorch says of every error of CUDA, below the reason.
bool IsAdvice(std::string_view line) {
  for (const std::string_view begin :
       {"Search for `cuda", "CUDA kernel errors might be asynchronously reported",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING", "Compile with `TORCH_USE_CUDA_DSA`",
        "Device-side assertions were explicitly omitted"}) {
    if (line.substr(0, begin.size()) == begin) return true;
  }
  return false;
}

// The last ones that say something; of a text without such, the last ones.
Json LastLines(std::string_view text) {
  std::vector<std::string_view> words, all;
  while (!text.empty() && words.size() < kLastLines) {
    const std::size_t end = text.find_last_not_of(std::string_view("\n\0", 2));
    if (end == std::string_view::npos) break;
    text = text.substr(0, end + 1);
    const std::size_t newline = text.rfind('\n');
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view line = text.substr(begin);
    if (all.size() < kLastLines) all.push_back(line);
    if (!IsBacktrace(line) && !IsAdvice(line)) words.push_back(line);
    text = text.substr(0, begin);
  }
  if (words.empty()) words = all;
  std::string joined;
  for (auto line = words.rbegin(); line != words.rend(); ++line) {
    joined += (joined.empty() ? "" : "\n") + std::string(*line);
  }
  if (joined.size() > kLastWordsBytes) joined.erase(0, joined.size() - kLastWordsBytes);
  return joined;
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
      fs::remove_all(path_ + "/work");      // of programs behind an adapter
      fs::remove_all(path_ + "/blocking");  // of the repetition after a device assert
      for (const auto& entry : fs::directory_iterator(path_)) {
        const std::string name = entry.path().filename();
        // Their ranks would find that their run is over.
        if (name.rfind(kGuardFolderBegin, 0) == 0) fs::remove_all(entry.path());
        if (name.rfind("evidence-rank", 0) == 0) fs::remove_all(entry.path());
        for (const char* prefix : {"plan.", "environment.", "rendezvous.", "nccl.", "nccl-rank",
                                   "flight-recorder-rank", "rank", "launcher.jsonl"}) {
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

std::string RunFolder::stdout_of(int rank) const { return OutputFile(path_, rank, STDOUT_FILENO); }

std::string RunFolder::stderr_of(int rank) const { return OutputFile(path_, rank, STDERR_FILENO); }

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

std::string TailOf(const std::string& path, std::int64_t begin, std::int64_t bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  struct stat status;
  std::string text;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > begin) {
    const std::int64_t from = std::max<std::int64_t>(begin, status.st_size - bytes);
    text.resize(static_cast<std::size_t>(status.st_size - from));
    const ssize_t got = pread(fd, text.data(), text.size(), from);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  close(fd);
  return text;
}

std::string LastWords(const std::string& path, std::int64_t begin) {
  const std::string text = TailOf(path, begin, kTailBytes);
  // Through JSON and back: bytes that are no UTF-8 become replacement characters.
  const std::string words = LastLines(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(words).get<std::string>();
}

}  // namespace trainwreck
