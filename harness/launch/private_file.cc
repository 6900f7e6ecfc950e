#include "harness/launch/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace trainwreck {
namespace {

bool IsOurs(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

bool IsOursAlone(const std::string& path) {
  struct stat link, status;
  return lstat(path.c_str(), &link) == 0 && stat(path.c_str(), &status) == 0 &&
         link.st_uid == geteuid() && IsOurs(status);
}

// The owner of the file that was opened is asked, not of one that had the name before.
std::string ReadOwnFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return "";
  std::string text;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && IsOurs(status)) {
    char bytes[1 << 16];
    for (ssize_t got; (got = read(fd, bytes, sizeof bytes)) != 0;) {
      if (got > 0) {
        text.append(bytes, static_cast<std::size_t>(got));
      } else if (errno != EINTR) {
        text.clear();
        break;
      }
    }
  }
  close(fd);
  return text;
}

}  // namespace trainwreck
