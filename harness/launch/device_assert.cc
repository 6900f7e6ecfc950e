#include "harness/launch/device_assert.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <string>

#include "harness/launch/run_folder.h"
#include "harness/protocol/description.h"
#include "harness/protocol/rank_files.h"
#include "harness/protocol/trace.h"

namespace trainwreck {
namespace {

constexpr char kError[] = "device-side assert triggered";  // cudaGetErrorString
// A program may also be told "unspecified launch failure"; then only the kernel's own words say it.
// (Not run on a GPU yet: that they alone start the repetition.)
constexpr char kKernelsWords[] = "] Assertion `";
constexpr std::int64_t kBytesRead = 4 << 20;  // of the end of what a rank wrote to stderr
constexpr std::size_t kLongestLine = 4096;

std::string TextOf(const Json& fields, const char* key) {
  const auto found = fields.find(key);
  return found != fields.end() && found->is_string() ? found->get<std::string>() : "";
}

// The error with which a rank ended; null: it said none.
const Event* ErrorOf(const RunResult& result, int rank) {
  const auto& events = result.trace.events;
  const auto found = std::find_if(events.rbegin(), events.rend(), [&](const Event& event) {
    return event.name == "exception" && event.rank == rank;
  });
  return found == events.rend() ? nullptr : &*found;
}

// What a kernel writes when an assertion of one of its threads fails:
// "Indexing.cu:1553: indexSelectSmallIndex: block: [1,0,0], thread: [2,0,0] Assertion `a < b`
// failed."
struct Assertion {
  std::string kernel, condition;
};

Assertion AssertionIn(const std::string& text) {
  static const std::regex kForm(R"((\w[^:]*): block: \[.*Assertion `(.+)` failed)");
  std::istringstream lines(text);
  std::string line;
  std::smatch found;
  while (std::getline(lines, line)) {
    if (line.size() > kLongestLine || line.find(kKernelsWords) == std::string::npos) continue;
    if (std::regex_search(line, found, kForm)) return {found[1], found[2]};
  }
  return {};
}

std::string OutputOf(const RunResult& result, const RankExit& exit) {
  return TailOf(OutputFile(result.folder, exit.rank, STDERR_FILENO), exit.stderr_begin, kBytesRead);
}

bool TellsOfAssert(const std::string& text) {
  return text.find(kError) != std::string::npos || text.find(kKernelsWords) != std::string::npos;
}

// The process that ended with the error of a device assert; null: none did. PyTorch's message has
// more lines behind the error than last words have, so its output is searched, too.
const RankExit* ExitWithAssert(const RunResult& result) {
  if (result.end != RunEnd::kFailed) return nullptr;
  for (const RankExit& exit : result.exits) {
    if (exit.code == 0 && exit.signal == 0) continue;
    const Event* error = ErrorOf(result, exit.rank);
    const bool is_in_event =
        error != nullptr && TextOf(error->fields, "what").find(kError) != std::string::npos;
    if (is_in_event || TellsOfAssert(exit.last_words) || TellsOfAssert(OutputOf(result, exit))) {
      return &exit;
    }
  }
  return nullptr;
}

// The rank of a process, or the one that failed below it, where it is the program's own launcher.
int RankOf(const RunResult& result, const RankExit& exit) {
  const auto& events = result.trace.events;
  const auto failed = std::find_if(events.rbegin(), events.rend(), [](const Event& event) {
    return event.name == "rank_failed" && event.rank >= 0;
  });
  return failed == events.rend() ? exit.rank : failed->rank;
}

std::string SentenceOf(const Json& fields) {
  const auto said = [&](const char* form, const char* key) {
    const std::string text = TextOf(fields, key);
    return text.empty() ? "" : fmt::format(fmt::runtime(form), text);
  };
  return "made once more with CUDA_LAUNCH_BLOCKING=1, it failed in step " +
         std::to_string(fields.value("step", -1)) + said(", stage {}", "stage") +
         said(", in {}", "op") + said(" of {}", "within") + said(": assertion `{}`", "assertion") +
         said(" of the kernel {}", "kernel");
}

}  // namespace

std::optional<int> RankWithDeviceAssert(const RunResult& result) {
  const RankExit* exit = ExitWithAssert(result);
  return exit == nullptr ? std::nullopt : std::optional(RankOf(result, *exit));
}

Run WithBlockingLaunches(const Run& run) {
  Run again = run;
  again.id += "/blocking";
  again.environment["CUDA_LAUNCH_BLOCKING"] = "1";
  again.policy.max_restarts = 0;
  return again;
}

void AddDeviceAssert(const RunResult& repeated, RunResult& result) {
  const RankExit* exit = ExitWithAssert(repeated);
  if (exit == nullptr) {
    result.detail += "; made once more with CUDA_LAUNCH_BLOCKING=1, it did not fail so";
    return;
  }
  const int rank = RankOf(repeated, *exit);
  Json fields = {{"rank", rank}};
  int step = repeated.trace.last_step(rank) + 1;
  if (const Event* error = ErrorOf(repeated, rank)) {
    step = std::max(step, error->step);
    for (const char* key : {"stage", "op", "within"}) {
      if (const std::string text = TextOf(error->fields, key); !text.empty()) fields[key] = text;
    }
  }
  const Assertion assertion = AssertionIn(OutputOf(repeated, *exit));
  if (!assertion.kernel.empty()) {
    fields["kernel"] = assertion.kernel;
    fields["assertion"] = assertion.condition;
  }
  RequireDescribed("device_assert", fields, LauncherEvents());
  fields["t"] = "event";
  fields["event"] = "device_assert";
  fields["time"] = result.wall_seconds;
  fields["step"] = step;
  TraceWriter(result.folder + "/launcher.jsonl").Write(fields);
  result.detail += "; " + SentenceOf(fields);
  result.trace.events.push_back({"device_assert", step, -1, result.wall_seconds, fields});
}

}  // namespace trainwreck
