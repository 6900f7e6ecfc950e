#include "harness/launch/nccl_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "harness/protocol/rank_files.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLogTailBytes = 64 << 10;  // with NCCL_DEBUG=TRACE a log is huge
constexpr std::size_t kWarningBytes = 500;        // of a warning

}  // namespace

std::string DescribeNcclLogs(const std::string& folder, int ranks, const std::string& since,
                             const std::string& said) {
  std::string text;
  std::error_code error;
  const fs::file_time_type begin = fs::last_write_time(since, error);
  const bool has_begin = !error;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = NcclLogFile(folder, rank);
    if (!fs::is_regular_file(path, error)) continue;
    if (has_begin && fs::last_write_time(path, error) < begin) continue;
    const auto bytes = static_cast<std::int64_t>(fs::file_size(path, error));
    if (error) continue;
    const std::string last =
        LastNcclWarning(path, std::max<std::int64_t>(0, bytes - kLogTailBytes));
    const std::string warning = CleanText(last.substr(0, kWarningBytes));
    if (warning.empty() || said.find(warning) != std::string::npos) continue;
    text += fmt::format("{}rank {}: {}", text.empty() ? "NCCL: " : "; ", rank, warning);
  }
  return text;
}

}  // namespace trainwreck
