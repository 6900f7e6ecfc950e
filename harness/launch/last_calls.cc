#include "harness/launch/last_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "harness/protocol/json.h"
#include "harness/protocol/parse_json.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

constexpr std::uintmax_t kLargestFile = 64 << 10;  // 16 lines of 256 bytes are 4 KiB

std::optional<LastCall> CallIn(const std::string& line) {
  const Json json = TryParseJson(line);
  if (!json.is_object()) return std::nullopt;  // unused, or torn by the kill
  try {
    LastCall call{.call = json.at("call").get<int>(),
                  .step = json.at("step").get<int>(),
                  .op = json.at("op").get<std::string>(),
                  .shape = json.at("shape").get<std::string>(),
                  .dtype = json.at("dtype").get<std::string>(),
                  .began_s = json.at("began").get<double>()};
    const Json& ended = json.at("ended");
    if (ended.is_number()) {
      call.state = CallState::kEnded;
      call.ended_s = ended.get<double>();
    } else if (!ended.is_null()) {
      call.state = CallState::kFailed;
    }
    return call;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string Name(const LastCall& call) {
  const std::string dtype = call.dtype.empty() ? "" : " " + call.dtype;
  return fmt::format("{} {}{} (call {}, step {})", call.op, call.shape, dtype, call.call,
                     call.step);
}

std::string Describe(const LastCall& call) {
  switch (call.state) {
    case CallState::kWaits:
      return fmt::format("is in {} since {:.2f} s", Name(call), call.began_s);
    case CallState::kEnded:
      return fmt::format("ended {} at {:.2f} s", Name(call), call.ended_s);
    case CallState::kFailed:
      return fmt::format("failed in {}, begun at {:.2f} s", Name(call), call.began_s);
  }
  return "";
}

}  // namespace

const char* ToString(CallState state) {
  switch (state) {
    case CallState::kWaits:
      return "waits";
    case CallState::kEnded:
      return "ended";
    case CallState::kFailed:
      return "failed";
  }
  return "";
}

std::string CallsPath(const std::string& folder, int rank) {
  return fmt::format("{}/rank{}.calls", folder, rank);
}

std::vector<LastCall> ReadLastCalls(const std::string& folder, int rank) {
  const std::string path = CallsPath(folder, rank);
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  std::vector<LastCall> calls;
  if (error || bytes > kLargestFile) return calls;
  std::istringstream lines(ReadFile(path).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (auto call = CallIn(line)) calls.push_back(*std::move(call));
  }
  std::sort(calls.begin(), calls.end(),
            [](const LastCall& a, const LastCall& b) { return a.call < b.call; });
  return calls;
}

std::string DescribeLastCalls(const std::string& folder, int ranks) {
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<LastCall> calls = ReadLastCalls(folder, rank);
    if (calls.empty()) continue;
    text += fmt::format("{}rank {} {}", text.empty() ? "last calls: " : "; ", rank,
                        Describe(calls.back()));
    if (calls.size() > 1) text += ", after " + Name(calls[calls.size() - 2]);
  }
  return text;
}

}  // namespace trainwreck
