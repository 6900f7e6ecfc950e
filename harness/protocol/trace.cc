#include "harness/protocol/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace trainwreck {

TraceWriter::TraceWriter(const std::string& path)
    : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "trace file " + path);
}

TraceWriter::~TraceWriter() {
  if (fd_ >= 0) close(fd_);
}

void TraceWriter::Write(const Json& record) {
  WriteLine(record.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void TraceWriter::WriteLine(std::string line) {
  line += '\n';
  const char* data = line.data();
  std::size_t left = line.size();
  while (left > 0) {  // one write in all but the rarest cases: a signal, a nearly full disk
    const ssize_t written = write(fd_, data, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category(), "writing the trace");
    }
    data += written;
    left -= static_cast<std::size_t>(written);
  }
}

}  // namespace trainwreck
