// trainwreck show: the cases of an invocation, in full, for a terminal.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "harness/cli/verb.h"
#include "harness/cli/verbs/console_options.h"
#include "harness/report/case_view.h"
#include "harness/report/console.h"
#include "harness/report/progress.h"
#include "harness/report/report.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/session/stored_trace.h"
#include "harness/text/glob.h"
#include "harness/text/nearest.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

struct ShowOptions {
  CommonOptions common;
  std::string run;
  std::vector<std::string> cases;
  std::string signal = "loss";
  int height = 4;
  bool no_pager = false;
};

StoredReport ReportOf(const std::string& folder) {
  const std::string path = folder + "/verdicts.json";
  if (!fs::is_regular_file(path)) {
    throw UsageError("'" + folder + "' is no finished invocation: there is no " + path);
  }
  try {
    return ReadJsonReport(path);
  } catch (const std::exception& error) {
    throw ConfigurationError(error.what());
  }
}

// By name or glob of cases or scenarios; none: those that did not pass, or all where all passed.
std::vector<const Verdict*> ShownCases(const std::vector<Verdict>& verdicts,
                                       const std::vector<std::string>& names) {
  std::vector<const Verdict*> chosen;
  for (const std::string& name : names) {
    const std::size_t before = chosen.size();
    std::vector<std::string> known;
    for (const Verdict& verdict : verdicts) {
      known.push_back(verdict.case_name);
      if (name == verdict.case_name || GlobMatches(name, verdict.case_name) ||
          GlobMatches(name, verdict.scenario)) {
        chosen.push_back(&verdict);
      }
    }
    if (chosen.size() == before) {
      throw UsageError("no case '" + name + "' in this invocation" + NearestHint(name, known));
    }
  }
  if (!names.empty()) return chosen;
  for (const Verdict& verdict : verdicts) {
    if (verdict.verdict != VerdictKind::kPass && verdict.verdict != VerdictKind::kSkip) {
      chosen.push_back(&verdict);
    }
  }
  if (!chosen.empty()) return chosen;
  for (const Verdict& verdict : verdicts) chosen.push_back(&verdict);
  return chosen;
}

// Of each arm the run of its worst check, else the typical one, else any: as far as it was kept.
std::map<std::string, KeptTrace> RunsOf(const Verdict& verdict, const fs::path& folder) {
  std::map<std::string, KeptTrace> runs;
  for (const ArmSummary& arm : verdict.arms) {
    std::vector<int> seeds;
    for (const CheckResult& check : verdict.checks) {
      if (check.arm == arm.arm && !check.failure_class.empty()) seeds.push_back(check.worst_seed);
    }
    seeds.push_back(arm.median_seed);
    const auto made = verdict.runs.find(arm.arm);
    const int count = made == verdict.runs.end() ? 0 : static_cast<int>(made->second.size());
    for (int seed = 0; seed < count; ++seed) seeds.push_back(seed);
    for (const int seed : seeds) {
      const fs::path kept =
          folder / verdict.scenario / verdict.point / arm.arm / std::to_string(seed);
      if (seed < 0 || !fs::is_regular_file(kept / "run.json")) continue;
      runs[arm.arm] = {.seed = seed,
                       .folder = kept.lexically_normal().string(),
                       .trace = LoadStoredTrace(kept.string()).trace};
      break;
    }
  }
  return runs;
}

// $PAGER, else less. Where neither can be started, the shell says so and the text is lost, so that
// is asked for first.
std::string PagerCommand() {
  const char* pager = std::getenv("PAGER");
  if (pager != nullptr) return pager;
  return std::system("command -v less >/dev/null 2>&1") == 0 ? "less -R" : "";
}

void Page(const std::string& text, const ShowOptions& options) {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const std::string pager = options.no_pager || !is_terminal ? "" : PagerCommand();
  if (pager.empty() || pager == "cat") {
    std::cout << text;
    return;
  }
  // As git does: it ends by itself where all fits into the window, and leaves the text there.
  setenv("LESS", "FRX", /*overwrite=*/0);
  setenv("LESSCHARSET", "utf-8", /*overwrite=*/0);
  std::FILE* pipe = popen(pager.c_str(), "we");
  if (pipe == nullptr) {
    std::cout << text;
    return;
  }
  signal(SIGINT, SIG_IGN);  // it stops a search of the pager, not us
  std::fwrite(text.data(), 1, text.size(), pipe);
  pclose(pipe);
}

int Show(const ShowOptions& options) {
  const std::string folder = FindOutputFolder(options.run);
  const StoredReport report = ReportOf(folder);
  const bool is_named = options.signal != ShowOptions().signal;
  const ConsoleOptions console = ConsoleOptionsOf(options.common);
  const CaseViewOptions view{
      .width = WindowWidth(STDOUT_FILENO),
      .unicode = console.unicode,
      .color = console.color,
      .height = options.height,
      .signal = is_named ? StoredSignalName(folder, options.signal) : options.signal};
  std::string text;
  for (const Verdict* verdict : ShownCases(report.verdicts, options.cases)) {
    if (!text.empty()) text += "\n" + std::string(std::min(view.width - 1, 79), '=') + "\n\n";
    text += CaseView(*verdict, RunsOf(*verdict, folder), view);
  }
  Page(text, options);
  return kExitPassed;
}

void Declare(VerbArguments& arguments, ShowOptions& options) {
  arguments.Positional("RUN", options.run, "Folder of the invocation, or latest").Required();
  arguments.Positional("CASE", options.cases,
                       "Cases, by name or glob [those that did not pass, or all]");
  arguments.Option("--signal", options.signal, "The signal of the curves [loss]", "NAME");
  arguments.Option("--height", options.height, "Lines of a curve [4]", "N").Between(1, 100);
  arguments.Flag("--no-pager", options.no_pager, "Print, even to a terminal");
  arguments.Common(options.common);
}

const VerbRegistration registration("show", "Show cases with curves and events, page by page",
                                    kStored, Declare, Show, /*prints_colors=*/true);

}  // namespace
}  // namespace trainwreck
