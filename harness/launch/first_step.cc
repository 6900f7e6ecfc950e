#include "harness/launch/first_step.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/protocol/rank_files.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

constexpr std::size_t kLineBytes = 1 << 20;
constexpr std::int64_t kAtOnce = 4 << 20;

// Whether a record says so; the trace's reader parses it.
bool Counts(std::string line, bool takes_collectives) {
  std::erase(line, ' ');
  return line.find("\"t\":\"step\"") != std::string::npos ||
         (takes_collectives && line.find("\"t\":\"collective\"") != std::string::npos);
}

}  // namespace

FirstStepWatch::FirstStepWatch(const std::string& folder, int ranks, bool takes_collectives)
    : takes_collectives_(takes_collectives) {
  for (int rank = 0; rank < ranks; ++rank) {
    File file;
    file.path = TraceFile(folder, rank);
    file.offset = FileSize(file.path);
    files_.push_back(std::move(file));
  }
}

bool FirstStepWatch::Seen() {
  char buffer[1 << 16];
  for (auto file = files_.begin(); !seen_ && file != files_.end(); ++file) {
    const int fd = open(file->path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) continue;
    struct stat status;
    const bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    const std::int64_t enough = file->offset + kAtOnce;
    ssize_t got;
    while (is_file && !seen_ && file->offset < enough &&
           (got = pread(fd, buffer, sizeof buffer, file->offset)) > 0) {
      file->offset += got;
      file->tail.append(buffer, static_cast<std::size_t>(got));
      std::size_t begin = 0;
      for (std::size_t end; !seen_ && (end = file->tail.find('\n', begin)) != std::string::npos;
           begin = end + 1) {
        seen_ = Counts(file->tail.substr(begin, end - begin), takes_collectives_);
      }
      file->tail.erase(0, begin);
      if (file->tail.size() > kLineBytes) file->tail.clear();
    }
    close(fd);
  }
  return seen_;
}

}  // namespace trainwreck
