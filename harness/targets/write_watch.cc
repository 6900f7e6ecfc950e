#include "harness/targets/write_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kEvents = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO;

}  // namespace

WriteWatch::WriteWatch(const std::string& folder) : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  Add(folder);
}

WriteWatch::~WriteWatch() {
  if (fd_ >= 0) close(fd_);
}

void WriteWatch::Add(const std::string& folder) {
  const int watch = inotify_add_watch(fd_, folder.c_str(), kEvents | IN_ONLYDIR);
  if (watch < 0) return;
  folders_[watch] = folder;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) Add(entry.path().string());
  }
}

WritesSeen WriteWatch::Read() {
  WritesSeen seen;
  std::set<std::string> open;
  alignas(inotify_event) char buffer[16384];
  for (ssize_t size; (size = read(fd_, buffer, sizeof buffer)) > 0;) {
    for (const char* at = buffer; at < buffer + size;) {
      inotify_event event;
      std::memcpy(&event, at, sizeof event);
      const std::string path = folders_[event.wd] + "/" + (event.len > 0 ? at + sizeof event : "");
      at += sizeof event + event.len;
      if ((event.mask & IN_ISDIR) != 0) {
        if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) Add(path);
      } else if ((event.mask & IN_CLOSE_WRITE) != 0) {
        ++seen.finished;
        open.erase(path);
      } else if ((event.mask & IN_MOVED_TO) != 0) {
        ++seen.finished;
        seen.moved = path;
      } else if ((event.mask & (IN_CREATE | IN_MODIFY)) != 0) {
        open.insert(path);
      }
    }
  }
  if (!open.empty()) seen.open = *open.begin();
  return seen;
}

}  // namespace trainwreck
