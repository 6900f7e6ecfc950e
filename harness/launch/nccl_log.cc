#include "harness/launch/nccl_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLogTailBytes = 64 << 10;  // with NCCL_DEBUG=TRACE a log is huge
constexpr std::size_t kWarningBytes = 500;          // of a warning

// From "NCCL WARN" on; before it are the machine, the process and the device.
std::string LastWarning(const std::string& path, std::uintmax_t bytes) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(bytes - std::min(bytes, kLogTailBytes)));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find("NCCL WARN");
    if (begin != std::string::npos) last = line.substr(begin, kWarningBytes);
  }
  return CleanText(last);
}

}  // namespace

std::string DescribeNcclLogs(const std::string& folder, int ranks, const std::string& since,
                             const std::string& said) {
  std::string text;
  std::error_code error;
  const fs::file_time_type begin = fs::last_write_time(since, error);
  const bool has_begin = !error;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = fmt::format("{}/nccl-rank{}.log", folder, rank);
    if (!fs::is_regular_file(path, error)) continue;
    if (has_begin && fs::last_write_time(path, error) < begin) continue;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (error) continue;
    const std::string warning = LastWarning(path, bytes);
    if (warning.empty() || said.find(warning) != std::string::npos) continue;
    text += fmt::format("{}rank {}: {}", text.empty() ? "NCCL: " : "; ", rank, warning);
  }
  return text;
}

}  // namespace trainwreck
