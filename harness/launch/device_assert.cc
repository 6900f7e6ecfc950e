#include "harness/launch/device_assert.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <string>

#include "harness/protocol/description.h"
#include "harness/protocol/rank_files.h"
#include "harness/protocol/trace.h"

namespace trainwreck {
namespace {

constexpr char kError[] = "device-side assert triggered";  // cudaGetErrorString
// A program may also be told "unspecified launch failure"; then only the kernel's own words say it.
constexpr char kKernelsWords[] = "] Assertion `";
constexpr int kLinesRead = 1000;  // of what a rank wrote to stderr

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

Assertion AssertionIn(const std::string& path) {
  static const std::regex kForm(R"((\w[^:]*): block: \[.*Assertion `(.+)` failed)");
  std::ifstream file(path);
  std::string line;
  std::smatch found;
  for (int i = 0; i < kLinesRead && std::getline(file, line); ++i) {
    if (line.size() < 4096 && std::regex_search(line, found, kForm)) return {found[1], found[2]};
  }
  return {};
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
  if (result.end != RunEnd::kFailed) return std::nullopt;
  for (const RankExit& exit : result.exits) {
    const Event* error = ErrorOf(result, exit.rank);
    const bool is_in_event =
        error != nullptr && TextOf(error->fields, "what").find(kError) != std::string::npos;
    const bool is_in_words = exit.last_words.find(kError) != std::string::npos ||
                             exit.last_words.find(kKernelsWords) != std::string::npos;
    if (is_in_event || is_in_words) return exit.rank;
  }
  return std::nullopt;
}

Run WithBlockingLaunches(const Run& run) {
  Run again = run;
  again.id += "/blocking";
  again.environment["CUDA_LAUNCH_BLOCKING"] = "1";
  again.policy.max_restarts = 0;
  return again;
}

void AddDeviceAssert(const RunResult& repeated, RunResult& result) {
  const std::optional<int> rank = RankWithDeviceAssert(repeated);
  if (!rank) {
    result.detail += "; made once more with CUDA_LAUNCH_BLOCKING=1, it did not fail so";
    return;
  }
  Json fields = {{"rank", *rank}};
  int step = repeated.trace.last_step(*rank) + 1;
  if (const Event* error = ErrorOf(repeated, *rank)) {
    step = std::max(step, error->step);
    for (const char* key : {"stage", "op", "within"}) {
      if (const std::string text = TextOf(error->fields, key); !text.empty()) fields[key] = text;
    }
  }
  const Assertion assertion = AssertionIn(OutputFile(repeated.folder, *rank, STDERR_FILENO));
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
