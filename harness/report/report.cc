#include "harness/report/report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

namespace trainwreck {
namespace {

std::map<int, ReportFormat>& Formats() {
  static std::map<int, ReportFormat> formats;
  return formats;
}

[[noreturn]] void Fail(const std::string& what, const std::string& path) {
  throw std::system_error(errno, std::generic_category(), what + " " + path);
}

void WriteAll(int fd, const std::string& text, const std::string& path) {
  const char* data = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const ssize_t written = write(fd, data, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail("writing", path);
    data += written;
    left -= static_cast<std::size_t>(written);
  }
}

// Beside its place, then renamed: readers see the old file or the whole new one.
void ReplaceFile(const std::string& path, const std::string& text) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    // /dev/stdout or a FIFO: nothing to rename over.
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) Fail("opening", path);
    try {
      WriteAll(fd, text, path);
    } catch (...) {
      close(fd);
      throw;
    }
    close(fd);
    return;
  }
  const std::string beside = path + "." + std::to_string(getpid()) + ".tmp";
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) Fail("creating", beside);
  try {
    WriteAll(fd, text, path);
  } catch (...) {
    close(fd);
    unlink(beside.c_str());
    throw;
  }
  if (close(fd) != 0 || rename(beside.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(beside.c_str());
    errno = error;
    Fail("writing", path);
  }
}

}  // namespace

ReportRegistration::ReportRegistration(int place, ReportFormat format) {
  if (!Formats().emplace(place, std::move(format)).second) std::abort();
}

std::vector<ReportFormat> ReportFormats() {
  std::vector<ReportFormat> formats;
  for (const auto& [place, format] : Formats()) formats.push_back(format);
  return formats;
}

std::optional<ReportFormat> FindReportFormat(const std::string& name) {
  for (const auto& [place, format] : Formats()) {
    if (name == format.name) return format;
  }
  return std::nullopt;
}

void WriteReport(const ReportFormat& format, const std::string& path,
                 const std::vector<Verdict>& verdicts, const RunInfo& info) {
  RunInfo of_file = info;
  of_file.report_file = path;
  ReplaceFile(path, format.text(verdicts, of_file));
}

bool AppendStepSummary(const std::vector<Verdict>& verdicts, const RunInfo& info) {
  const char* path = std::getenv("GITHUB_STEP_SUMMARY");
  if (path == nullptr || *path == '\0') return false;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) Fail("opening", path);
  try {
    WriteAll(fd, MarkdownReport(verdicts, info), path);
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd);
  return true;
}

}  // namespace trainwreck
