#include "harness/session/reserved_room.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "harness/session/session.h"

namespace trainwreck {

ReservedRoom::ReservedRoom(const std::string& folder, std::int64_t bytes) {
  const std::string path = folder + "/.reserved." + std::to_string(getpid());
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd_ < 0) throw ConfigurationError("cannot write to the output folder '" + folder + "'");
  unlink(path.c_str());
  // Other errors are those of a file system that cannot reserve: then the disk's state decides.
  const int error = posix_fallocate(fd_, 0, bytes);
  if (error != ENOSPC && error != EDQUOT) return;
  Release();
  throw ConfigurationError("the disk of the output folder '" + folder + "' has no room for " +
                           std::to_string((bytes >> 20) + 1) +
                           " MiB of reports: name a folder on another disk with --output DIR");
}

void ReservedRoom::Release() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace trainwreck
