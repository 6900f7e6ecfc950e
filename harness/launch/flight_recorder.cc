#include "harness/launch/flight_recorder.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/protocol/json.h"
#include "harness/protocol/parse_json.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

constexpr std::uintmax_t kMostBytes = 16 << 20;  // 2000 calls are about 2 MB

std::string Call(const Json& entry) {
  return fmt::format("{} #{}", entry.at("profiling_name").get<std::string>(),
                     entry.at("collective_seq_id").get<std::int64_t>());
}

std::string DescribeRank(const Json& recorder) {
  const Json entries = recorder.value("entries", Json::array());
  if (entries.empty()) return "has made no call";
  // In the order of the calls: the first one that is not complete holds up all others.
  for (const Json& entry : entries) {
    const std::string state = entry.at("state").get<std::string>();
    if (state != "completed") return fmt::format("waits in {} ({})", Call(entry), state);
  }
  return "has finished its last call, " + Call(entries.back());
}

}  // namespace

std::string DescribeFlightRecorders(const std::string& folder, int ranks) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = fmt::format("{}/flight-recorder-rank{}.json", folder, rank);
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(path, error);
    if (error) continue;
    std::string words = "left an unreadable one";
    if (bytes <= kMostBytes) {
      try {
        words = DescribeRank(ParseJson(ReadFile(path).value_or("")));
      } catch (const std::exception&) {  // torn, or of another make
      }
    }
    text += fmt::format("{}rank {} {}", text.empty() ? "flight recorder: " : "; ", rank, words);
  }
  return text;
}

}  // namespace trainwreck
