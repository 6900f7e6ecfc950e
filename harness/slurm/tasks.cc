#include "harness/slurm/tasks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>

#include "harness/outcome/exit_status.h"
#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr int kNodeTries = 3;
constexpr int kTimeTries = 1;

template <typename Integer>
std::optional<Integer> ReadNumber(const std::string& text) {
  Integer number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end || number < 0) return std::nullopt;
  return number;
}

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// As wait(2) gives it.
int ExitStatusOf(int code, int signal) { return signal != 0 ? 128 + signal : code; }

// The words without meaning that Slurm prints where it has nothing to say.
std::string Meaning(const std::string& text) {
  static const std::set<std::string> kNothing = {"None", "(null)", "N/A", "None assigned"};
  return kNothing.contains(text) ? "" : text;
}

std::optional<SlurmTask> ReadQueued(const std::string& line) {
  const std::vector<std::string> fields = SplitAt(line, '|');
  if (fields.size() < 6) return std::nullopt;
  const auto job = ReadNumber<std::int64_t>(fields[0]);
  const auto index = ReadNumber<int>(fields[1]);
  if (!job || !index || fields[2].empty()) return std::nullopt;
  const int wait_status = ReadNumber<int>(fields[3]).value_or(0);
  return SlurmTask{.job = *job,
                   .index = *index,
                   .state = fields[2],
                   .exit_status = ExitStatusOf(wait_status >> 8, wait_status & 0x7f),
                   .nodes = Meaning(fields[4]),
                   .reason = Meaning(fields[5])};
}

// "17_2|CANCELLED by 0|0:15|n1"
std::optional<SlurmTask> ReadAccounted(const std::string& line) {
  const std::vector<std::string> fields = SplitAt(line, '|');
  if (fields.size() < 4) return std::nullopt;
  const std::vector<std::string> id = SplitAt(fields[0], '_');
  if (id.size() != 2) return std::nullopt;
  const auto job = ReadNumber<std::int64_t>(id[0]);
  const auto index = ReadNumber<int>(id[1]);
  const std::vector<std::string> exit = SplitAt(fields[2], ':');
  if (!job || !index || exit.size() != 2) return std::nullopt;
  return SlurmTask{.job = *job,
                   .index = *index,
                   .state = fields[1].substr(0, fields[1].find(' ')),
                   .exit_status = ExitStatusOf(ReadNumber<int>(exit[0]).value_or(0),
                                               ReadNumber<int>(exit[1]).value_or(0)),
                   .nodes = Meaning(fields[3]),
                   .reason = ""};
}

template <typename Read>
std::vector<SlurmTask> ReadLines(const std::string& text, const Read& read) {
  std::vector<SlurmTask> tasks;
  for (const std::string& line : SplitAt(text, '\n')) {
    if (auto task = read(CleanText(line))) tasks.push_back(std::move(*task));
  }
  return tasks;
}

// "JobHeldUser", "JobHeldAdmin", "launch failed requeued held".
bool IsHeld(const std::string& reason) {
  return reason.find("held") != reason.npos || reason.find("Held") != reason.npos;
}

}  // namespace

std::vector<SlurmTask> ParseSqueue(const std::string& text) { return ReadLines(text, ReadQueued); }

std::vector<SlurmTask> ParseSacct(const std::string& text) {
  return ReadLines(text, ReadAccounted);
}

bool HasEnded(const std::string& state) {
  static const std::set<std::string> kEnds = {
      "BOOT_FAIL",     "CANCELLED", "COMPLETED",     "DEADLINE",  "FAILED",  kForgotten,
      "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"};
  return kEnds.contains(state);
}

bool IsSubmittedAgain(const std::string& state, const std::vector<std::string>& earlier) {
  using States = std::set<std::string>;
  static const States kOfNodes = {"BOOT_FAIL", "LAUNCH_FAILED", "NODE_FAIL", "PREEMPTED"};
  static const States kOfTime = {"TIMEOUT", kForgotten};
  const auto had = [&](const States& states) {
    return std::count_if(earlier.begin(), earlier.end(),
                         [&](const std::string& end) { return states.contains(end); });
  };
  if (kOfNodes.contains(state)) return had(kOfNodes) < kNodeTries;
  return kOfTime.contains(state) && had(kOfTime) < kTimeTries;
}

bool WritesVerdicts(int exit_status) {
  static const std::set<int> kWithReports = {kExitPassed,      kExitFailed,
                                             kExitNothingRun,  kExitInconclusive,
                                             kExitRequirement, kExitInfrastructure};
  return kWithReports.contains(exit_status);
}

std::string ArrayText(const std::vector<int>& indices) {
  std::vector<std::string> ranges;
  for (std::size_t begin = 0, end = 0; begin < indices.size(); begin = end) {
    for (end = begin + 1; end < indices.size() && indices[end] == indices[end - 1] + 1;) ++end;
    std::string range = std::to_string(indices[begin]);
    if (end - begin > 1) range += "-" + std::to_string(indices[end - 1]);
    ranges.push_back(std::move(range));
  }
  return Join(ranges, ",");
}

std::vector<int> FirstThatFit(std::vector<int> indices) {
  constexpr std::size_t kMostBytes = 100'000;
  while (ArrayText(indices).size() > kMostBytes) indices.resize(indices.size() / 2);
  return indices;
}

std::string Summary(const std::vector<SlurmTask>& tasks) {
  int running = 0, waiting = 0;
  std::set<std::string> reasons, held;  // jobs that go on when somebody says so
  for (const SlurmTask& task : tasks) {
    if (HasEnded(task.state)) continue;
    if (task.state == "PENDING") {
      ++waiting;
      if (!task.reason.empty()) reasons.insert(task.reason);
      if (IsHeld(task.reason)) held.insert(std::to_string(task.job));
    } else {
      ++running;
    }
  }
  std::vector<std::string> parts;
  if (running > 0) parts.push_back(std::to_string(running) + " running");
  if (waiting > 0) {
    parts.push_back(std::to_string(waiting) + " waiting" +
                    (reasons.empty() ? "" : " (" + Join(reasons) + ")"));
  }
  if (!held.empty()) parts.push_back("see 'scontrol release " + Join(held, ",") + "'");
  return Join(parts);
}

}  // namespace trainwreck
