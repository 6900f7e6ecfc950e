// trainwreck judge: the scenarios as they are now over the runs that an earlier invocation kept.
// Nothing is trained, and what was not trained then stays open.
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "harness/campaign/campaign.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/console_options.h"
#include "harness/judge/verdict.h"
#include "harness/picture/files.h"
#include "harness/picture/picture.h"
#include "harness/report/console.h"
#include "harness/report/report.h"
#include "harness/session/chosen.h"
#include "harness/session/kept_runs.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct JudgeOptions {
  CommonOptions common;
  std::string run;
  SelectionOptions selection;
  int seeds = 0;  // 0: as the scenarios say
  std::vector<std::string> set;
  std::vector<ReportRequest> reports;
  std::string output;  // empty: `judged` in the run's folder
};

namespace fs = std::filesystem;

// Scenarios that the invocation had: by its report, and by the runs that it kept.
std::set<std::string> ScenariosOf(const std::string& folder, RunInfo& info) {
  std::set<std::string> names;
  if (fs::is_regular_file(folder + "/verdicts.json")) {
    try {
      const StoredReport report = ReadJsonReport(folder + "/verdicts.json");
      info = report.info;
      for (const Verdict& verdict : report.verdicts) names.insert(verdict.scenario);
    } catch (const std::exception& error) {
      std::cerr << "trainwreck: " << error.what() << "\n";
    }
  }
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "run.json" || !entry.is_regular_file()) continue;
    try {
      names.insert(LoadStoredRun(entry.path().parent_path().string()).run.scenario);
    } catch (const ConfigurationError& error) {
      std::cerr << "trainwreck: " << error.what() << "\n";
    }
  }
  return names;
}

// The target as it described itself then: plans are made, and formulas read, as they were.
Session SessionOf(const std::string& folder, const CommonOptions& common) {
  Session session;
  const std::optional<TargetDescription> stored = FindStoredDescription(folder);
  if (!stored) {
    throw ConfigurationError("'" + folder +
                             "' holds no target.json: it is no folder of 'trainwreck run'");
  }
  session.description = *stored;
  session.scenarios_root = FindScenariosRoot(common);
  session.color = WantsColor(common.color, STDERR_FILENO);
  return session;
}

struct Judged {
  Verdict verdict;
  int missing = 0;
};

// `fault/0, fault/1: it was not made then`, one line for each reason.
std::string Missing(const std::map<std::string, std::vector<std::string>>& runs_by_reason) {
  std::string text;
  for (const auto& [reason, runs] : runs_by_reason) {
    text += text.empty() ? "" : "; ";
    text += Join(runs) + ": " + reason;
  }
  return text;
}

Judged JudgeCase(const Case& one, KeptRuns& kept_runs, const TargetDescription& target,
                 std::size_t picture_bytes) {
  CaseResults results;
  results.plan = &one;
  Judged judged;
  std::map<std::string, std::vector<std::string>> missing;
  int wanted = 0;
  for (const ArmPlan& arm : one.arms) {
    for (const Run& run : arm.runs) {
      ++wanted;
      KeptRun kept = kept_runs.Find(run);
      if (kept.result) {
        results.runs[arm.name].emplace(run.seed, std::move(*kept.result));
      } else {
        missing[kept.why_not].push_back(arm.name + "/" + std::to_string(run.seed));
        ++judged.missing;
      }
    }
  }
  judged.verdict = Judge(results, target);
  if (picture_bytes > 0) judged.verdict.picture = PictureOf(results, target, {picture_bytes});
  if (judged.missing == 0) return judged;
  const std::string why = std::to_string(judged.missing) + " of " + std::to_string(wanted) +
                          " runs are missing: " + Missing(missing);
  // Seeds that may disagree, or an expected "undecided", would let it pass; nobody has seen it.
  Verdict& verdict = judged.verdict;
  if (verdict.verdict == VerdictKind::kPass || verdict.verdict == VerdictKind::kInconclusive) {
    verdict.verdict = VerdictKind::kInconclusive;
    verdict.failure_class = FailureClass::kUndecided;
    verdict.expected_limit = false;
    verdict.reason = why;
  }
  std::cerr << "trainwreck: " << one.name << ": " << why << "\n";
  return judged;
}

RunInfo InfoOf(const JudgeOptions& options, const RunInfo& then, const TargetDescription& target,
               const std::string& output) {
  RunInfo info = then;  // of the program that was trained, and of the machine
  info.version = kVersion;
  info.command_line = options.common.command_line;
  if (info.target.empty()) info.target = target.name + " " + target.version;
  info.started_utc = UtcNow();
  info.output_dir = output;
  info.runs = 0;
  info.wall_seconds = info.cpu_seconds = 0;
  return info;
}

// Without PATHs, only what the invocation had: other scenarios have nothing to be judged by.
std::vector<Case> CasesToJudge(std::vector<Case> cases, const std::set<std::string>& had,
                               const SelectionOptions& selection, int* gone) {
  if (!selection.paths.empty()) return cases;
  std::set<std::string> found;
  std::vector<Case> kept;
  for (Case& one : cases) {
    if (!had.contains(one.scenario->name)) continue;
    found.insert(one.scenario->name);
    kept.push_back(std::move(one));
  }
  if (!selection.keyword.empty() || !selection.tag.empty()) return kept;
  for (const std::string& name : had) {
    if (found.contains(name)) continue;
    std::cerr << "trainwreck: " << name << ": its scenario is not there any more\n";
    ++*gone;
  }
  return kept;
}

int JudgeVerb(const JudgeOptions& options) {
  const JudgeOptions& judge = options;
  const std::string folder = FindOutputFolder(judge.run);
  const Session session = SessionOf(folder, options.common);
  PlanOptions plan;
  plan.seeds = judge.seeds;
  plan.overrides = ParseOverrides(judge.set, session.description);
  Chosen chosen = ChooseCases(session, judge.selection, plan, {});
  RunInfo then;
  const std::set<std::string> had = ScenariosOf(folder, then);
  int gone = 0;
  const std::vector<Case> cases =
      CasesToJudge(std::move(chosen.cases), had, judge.selection, &gone);
  if (cases.empty()) {
    std::cerr << "trainwreck: nothing to judge: no scenario here has runs in " << folder << "\n";
    return kExitNothingRun;
  }
  const std::string output = judge.output.empty() ? folder + "/judged" : judge.output;
  const RunInfo info = InfoOf(options, then, session.description, output);
  ConsoleReport console(std::cout, ConsoleOptionsOf(options.common));
  console.Begin(info, static_cast<int>(cases.size()), 0);
  std::vector<Verdict> verdicts;
  int missing = 0;
  KeptRuns kept_runs(folder);
  const std::size_t picture_bytes = PictureBytesOfRun(CountRuns(cases), cases.size());
  for (const Case& one : cases) {
    Judged judged =
        JudgeCase(one, kept_runs, session.description, picture_bytes * CountRuns({one}));
    console.Finished(judged.verdict);
    missing += judged.missing;
    verdicts.push_back(std::move(judged.verdict));
  }
  std::vector<ReportRequest> requests = {{"json", output + "/verdicts.json"},
                                         {"html", output + "/report.html"}};
  requests.insert(requests.end(), judge.reports.begin(), judge.reports.end());
  std::vector<std::string> files;
  for (const ReportRequest& request : requests) {
    WriteReport(*FindReportFormat(request.kind), request.path, verdicts, info);
    files.push_back(request.path);
  }
  WriteWholeFile(output + "/" + kPicturesFile, PicturesText(verdicts));
  console.End(verdicts, info, files);
  if (missing > 0) {
    std::cerr << "trainwreck: " << missing << (missing == 1 ? " run is" : " runs are")
              << " missing; 'trainwreck run --keep all' makes and keeps all\n";
  }
  const int status = ExitCode(verdicts);
  return status == kExitPassed && gone > 0 ? static_cast<int>(kExitInconclusive) : status;
}

void Declare(VerbArguments& arguments, JudgeOptions& options) {
  arguments.Positional("RUN", options.run, "Folder of the invocation, or latest").Required();
  arguments.Selection(options.selection);
  arguments.Seeds(options.seeds);
  arguments.Set(options.set);
  arguments.Reports(options.reports);
  arguments.Option("--output", options.output, "Folder for verdicts.json [RUN/judged]", "DIR");
  arguments.Common(options.common);
}

const VerbRegistration registration("judge", "Judge kept runs by the scenarios as they are now",
                                    kStored, Declare, JudgeVerb);

}  // namespace
}  // namespace trainwreck
