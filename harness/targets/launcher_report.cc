#include "harness/targets/launcher_report.h"

#include <re2/re2.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

constexpr std::size_t kWordLines = 3;
constexpr std::size_t kMostBytes = 1 << 20;  // of an error file

// What an elastic agent's worker left of its exception: {"message": {"message": "..."}}.
std::string WordsOfErrorFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::string words;
  // Not parsed as JSON: it is a stranger's, and may be nested as deeply as it likes.
  static const RE2 kMessage(R"re("message"\s*:\s*("(?:[^"\\]|\\.)*"))re");
  if (!RE2::PartialMatch(text, kMessage, &words)) return "";
  const Json unquoted = Json::parse(words, nullptr, /*allow_exceptions=*/false);
  return unquoted.is_string() ? unquoted.get<std::string>() : "";
}

RankFailure Failure(int rank, int exit_code, int pid) {
  RankFailure failure;
  failure.rank = rank;
  failure.pid = pid;
  if (exit_code < 0) {
    failure.signal = -exit_code;
  } else {
    failure.code = exit_code;
  }
  return failure;
}

// One failure of torchrun's report.
std::optional<RankFailure> ReadTorchFailure(const std::string& report) {
  static const RE2 kRank(R"((?m)^\s*rank\s*:\s*(\d+))");
  static const RE2 kExit(R"((?m)^\s*exitcode\s*:\s*(-?\d+)(?:\s*\(pid:\s*(\d+)\))?)");
  static const RE2 kFile(R"((?m)^\s*error_file\s*:\s*(\S+))");
  static const RE2 kTraceback(R"((?m)^\s*traceback\s*:\s*(.+)$)");
  int rank = 0, code = 0;
  std::string pid;  // may be missing
  if (!RE2::PartialMatch(report, kRank, &rank)) return std::nullopt;
  if (!RE2::PartialMatch(report, kExit, &code, &pid)) return std::nullopt;
  RankFailure failure = Failure(rank, code, std::atoi(pid.c_str()));
  std::string path, traceback;
  if (RE2::PartialMatch(report, kFile, &path) && path != "<N/A>") {
    failure.words = WordsOfErrorFile(path);
  }
  if (failure.words.empty() && RE2::PartialMatch(report, kTraceback, &traceback) &&
      traceback.find("To enable traceback see") == std::string::npos && failure.signal == 0) {
    failure.words = traceback;
  }
  return failure;
}

// torchrun looks at its ranks from time to time. Of those that it found dead at one look it calls
// the lowest the root cause; the others are listed before it, and so are those that it ended then.
std::optional<RankFailure> ReadTorchReport(const std::string& text) {
  const std::size_t begin = text.rfind("Root Cause (first observed failure):");
  if (begin == std::string::npos) return std::nullopt;
  const auto root = ReadTorchFailure(text.substr(begin));
  if (!root) return std::nullopt;
  std::vector<RankFailure> found_dead = {*root};
  static const RE2 kOther(R"((?ms)^\[\d+\]:\n(.*?error_file.*?)$)");
  const std::size_t others = text.rfind("Failures:\n", begin);
  re2::StringPiece rest = re2::StringPiece(text).substr(0, begin);
  rest.remove_prefix(std::min(others, begin));
  for (std::string report; RE2::FindAndConsume(&rest, kOther, &report);) {
    const auto other = ReadTorchFailure(report);
    if (!other) continue;
    const std::string ended = "Sending process " + std::to_string(other->pid) + " closing signal";
    if (text.find(ended) == std::string::npos) found_dead.push_back(*other);
  }
  return FirstOf(found_dead).failure;
}

std::optional<RankFailure> ReadMpiReport(const std::string& text) {
  static const RE2 kSignal(
      R"(process rank (\d+) with PID (\d+) on node \S+ exited on\s+signal (\d+))");
  static const RE2 kCode(R"(Process name: \[\[\d+,\d+\],(\d+)\]\s+Exit code:\s+(\d+))");
  int rank = 0, pid = 0, number = 0;
  if (RE2::PartialMatch(text, kSignal, &rank, &pid, &number)) return Failure(rank, -number, pid);
  if (RE2::PartialMatch(text, kCode, &rank, &number)) return Failure(rank, number, 0);
  return std::nullopt;
}

// As strsignal(3) says it, of a program that may have left a core.
int SignalOf(const std::string& words) {
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* description = sigdescr_np(signal);
    if (description != nullptr && words.rfind(description, 0) == 0) return signal;
  }
  return 0;
}

// srun names signals in words, and tells of the tasks as it hears of their ends: a rank that lost
// its peer may be told of before the peer. Of those in one line nobody knows the order, and those
// after "Terminating" were perhaps ended by Slurm itself.
std::optional<RankFailure> ReadSlurmReport(const std::string& text) {
  static const RE2 kTasks(R"((?m)srun: error: \S+: tasks? ([\d,-]+): (.+)$)");
  static const RE2 kCode(R"(Exited with exit code (\d+))");
  constexpr int kSeveral = -1;
  std::vector<RankFailure> told;
  std::string tasks, words;
  re2::StringPiece rest = re2::StringPiece(text).substr(0, text.find(": Terminating StepId="));
  while (RE2::FindAndConsume(&rest, kTasks, &tasks, &words)) {
    int code = 0;
    const int signal = RE2::PartialMatch(words, kCode, &code) ? 0 : SignalOf(words);
    if (code == 0 && signal == 0) continue;
    const bool is_one = tasks.find_first_of(",-") == std::string::npos;
    told.push_back(
        Failure(is_one ? std::atoi(tasks.c_str()) : kSeveral, signal != 0 ? -signal : code, 0));
  }
  if (told.empty()) return std::nullopt;
  const RankFailure first = FirstOf(told).failure;
  return first.rank == kSeveral ? std::nullopt : std::optional(first);
}

}  // namespace

std::string FailedNode(LauncherKind kind, const std::string& text) {
  static const RE2 kNode(R"((?m)srun: error: Node failure on (\S+)$)");
  std::string node;
  if (kind == LauncherKind::kSrun) RE2::PartialMatch(text, kNode, &node);
  return node;
}

namespace {

// torchrun's log, and lines of Slurm.
bool IsOfLauncher(const std::string& line) {
  static const RE2 kLog(
      R"(^(\[?[EWI]\d{4} |\[\d{4}-\d\d-\d\d |(ERROR|WARNING|INFO):torch|srun: |slurmstepd: ))");
  return line.empty() || RE2::PartialMatch(line, kLog);
}

// From here on the launcher tells what happened, and its own traceback follows.
bool BeginsReport(const std::string& line) {
  static const RE2 kBegin(R"(^(={20,}|-{20,})$|failed \(exitcode: |Sending process \d+ closing)");
  return RE2::PartialMatch(line, kBegin);
}

// What ranks wrote, without the launcher's own log and report.
struct RankLines {
  std::vector<std::string> own;  // of the failed rank
  std::vector<std::string> any;  // of a rank that is not known
};

RankLines ReadRankLines(const std::string& text, const RankFailure& failure) {
  static const RE2 kPrefix(R"(^\[(?:default|rank)?(\d+)\]:\s?(.*)$)");
  RankLines found;
  std::istringstream lines(text);
  bool is_report = false;
  for (std::string line; std::getline(lines, line);) {
    int of = -1;
    std::string words;
    if (RE2::FullMatch(line, kPrefix, &of, &words)) {
      if (of == failure.rank && !words.empty()) found.own.push_back(words);
      continue;
    }
    is_report = is_report || BeginsReport(line);
    if (!is_report && !IsOfLauncher(line)) found.any.push_back(line);
  }
  if (failure.signal != 0) found.any.clear();
  return found;
}

}  // namespace

FirstFailure FirstOf(const std::vector<RankFailure>& seen_at_once) {
  // 0: by itself, 1: perhaps since others failed, 2: told to by the launcher
  const auto order = [](const RankFailure& failure) {
    if (failure.signal == SIGTERM) return 2;
    return failure.signal == 0 || failure.signal == SIGABRT ? 1 : 0;
  };
  const auto first = std::min_element(
      seen_at_once.begin(), seen_at_once.end(),
      [&](const RankFailure& a, const RankFailure& b) { return order(a) < order(b); });
  const auto own = std::count_if(seen_at_once.begin(), seen_at_once.end(),
                                 [&](const RankFailure& failure) { return order(failure) == 0; });
  return {*first, seen_at_once.size() == 1 || own == 1};
}

std::optional<RankFailure> ReadLauncherReport(LauncherKind kind, const std::string& text) {
  switch (kind) {
    case LauncherKind::kOwn:
      return std::nullopt;
    case LauncherKind::kTorchrun:
      return ReadTorchReport(text);
    case LauncherKind::kMpirun:
      return ReadMpiReport(text);
    case LauncherKind::kSrun:
      return ReadSlurmReport(text);
  }
  return std::nullopt;
}

std::vector<std::string> LinesOfRank(const std::string& text, const RankFailure& failure) {
  RankLines lines = ReadRankLines(text, failure);
  return std::move(lines.own.empty() ? lines.any : lines.own);
}

std::string WordsOfRank(const std::string& text, const RankFailure& failure) {
  const auto [own, all] = ReadRankLines(text, failure);
  // Others may have written since; of two tracebacks the second is a complaint about the first.
  const auto traceback = std::find(all.begin(), all.end(), "Traceback (most recent call last):");
  const auto what = std::find_if(traceback == all.end() ? traceback : traceback + 1, all.end(),
                                 [](const std::string& line) { return line.front() != ' '; });
  if (own.empty() && what != all.end()) return *what;
  const std::vector<std::string>& chosen = own.empty() ? all : own;
  std::string said;
  for (std::size_t i = chosen.size() - std::min(kWordLines, chosen.size()); i < chosen.size();
       ++i) {
    said += (said.empty() ? "" : "\n") + chosen[i];
  }
  return said;
}

}  // namespace trainwreck
