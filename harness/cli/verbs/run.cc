// trainwreck run: all of a command line's cases, to verdicts and reports.
#include "harness/cli/verbs/run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <set>
#include <system_error>

#include "harness/campaign/campaign.h"
#include "harness/campaign/readings.h"
#include "harness/cli/clean_output.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/console_options.h"
#include "harness/cli/verbs/dry_run.h"
#include "harness/cli/verbs/run_on_slurm.h"
#include "harness/launch/gpu_memory.h"
#include "harness/picture/files.h"
#include "harness/picture/picture.h"
#include "harness/plan/device.h"
#include "harness/process/node_commands.h"
#include "harness/report/console.h"
#include "harness/report/report.h"
#include "harness/session/chosen.h"
#include "harness/session/preflight.h"
#include "harness/session/provenance.h"
#include "harness/session/recording.h"
#include "harness/session/reserved_room.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/text/clean_text.h"
#include "harness/text/glob.h"

namespace trainwreck {
namespace {

// --require and --max-skips, with what is missing on stderr.
bool MeetsRequirements(const Gates& gates, const std::vector<Verdict>& verdicts) {
  bool met = true;
  for (const std::string& name : gates.require) {
    int found = 0;
    for (const Verdict& verdict : verdicts) {
      if (!GlobMatches(name, verdict.scenario) && !GlobMatches(name, verdict.case_name) &&
          name != verdict.case_name) {
        continue;
      }
      ++found;
      // A known limit that is an error or a skip is no case that was executed.
      const bool was_executed =
          verdict.seen_verdict == VerdictKind::kPass || verdict.seen_verdict == VerdictKind::kFail;
      if (verdict.verdict == VerdictKind::kPass && was_executed) continue;
      std::cerr << "trainwreck: --require " << name << ": " << verdict.case_name
                << " did not pass (" << ToString(verdict.seen_verdict)
                << (verdict.expected_limit ? ", as it expects" : "") << ")\n";
      met = false;
    }
    if (found > 0) continue;
    std::cerr << "trainwreck: --require " << name << ": no such case was executed\n";
    met = false;
  }
  const auto skips = std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.seen_verdict == VerdictKind::kSkip;  // an expected one, too
  });
  if (gates.max_skips && skips > *gates.max_skips) {
    std::cerr << "trainwreck: " << skips << " cases were skipped, --max-skips allows "
              << *gates.max_skips << "\n";
    met = false;
  }
  return met;
}

// Not of a step of a search, which nobody reads.
bool HasPage(const RunOptions& options) { return options.html && !options.each_seed; }

std::vector<ReportRequest> ReportsOf(const RunOptions& options, const std::string& output) {
  std::vector<ReportRequest> requests = {{"json", output + "/verdicts.json"}};
  if (HasPage(options)) requests.push_back({"html", output + "/report.html"});
  requests.insert(requests.end(), options.reports.begin(), options.reports.end());
  return requests;
}

struct WrittenReports {
  std::vector<std::string> files;
  bool are_all = true;
};

// One that cannot be written takes nothing from the others.
WrittenReports WriteReports(const RunOptions& options, const std::string& output,
                            const std::vector<Verdict>& verdicts, const RunInfo& info) {
  WrittenReports written;
  auto attempt = [&](const std::function<void()>& write) {
    try {
      write();
      return true;
    } catch (const std::system_error& error) {
      std::cerr << "trainwreck: a report is missing: " << CleanText(error.what()) << "\n";
      return written.are_all = false;
    }
  };
  for (const ReportRequest& request : ReportsOf(options, output)) {
    const bool is_there = attempt(
        [&] { WriteReport(*FindReportFormat(request.kind), request.path, verdicts, info); });
    if (is_there) written.files.push_back(request.path);
  }
  if (!options.each_seed) {  // what 'report' makes the page from
    attempt([&] { WriteWholeFile(output + "/" + kPicturesFile, PicturesText(verdicts)); });
  }
  attempt([&] { AppendStepSummary(verdicts, info); });
  return written;
}

// Near enough: what a case and a run take in verdicts.json, and as much again for the others.
std::int64_t ReportBytes(const std::vector<Case>& cases) {
  constexpr std::int64_t kLeast = 512 << 10, kOfCase = 64 << 10, kOfRun = 2 << 10;
  const int runs = CountRuns(cases);
  const auto of_picture = static_cast<std::int64_t>(PictureBytesOfRun(runs, cases.size()));
  return kLeast + kOfCase * static_cast<std::int64_t>(cases.size()) +
         (kOfRun + 2 * of_picture) * runs;
}

std::string DevicesOf(const std::vector<Case>& cases, const TargetDescription& target) {
  std::set<std::string> kinds;
  for (const Case& one : cases) kinds.insert(one.devices.begin(), one.devices.end());
  std::string text;
  for (const std::string& kind : kinds) {
    text += (text.empty() ? "" : ", ") + DescribeDevice(kind, target);
  }
  return text;
}

// Runs on a GPU that others use are packed into the rest of its memory.
void WarnOfOthersOnGpus(const std::vector<Case>& cases, const std::vector<DeviceInfo>& devices) {
  const bool need_gpus = std::any_of(cases.begin(), cases.end(), [](const Case& one) {
    return std::find(one.devices.begin(), one.devices.end(), "cuda") != one.devices.end();
  });
  if (!need_gpus) return;
  const std::vector<std::int64_t> used = UsedByOthers(devices);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string said = SayOthers(devices[i], used[i]);
    if (said.empty()) continue;
    std::cerr << "trainwreck: " << devices[i].name << ": " << said << "; runs get the rest\n";
  }
}

// Of a split: the names of all cases in the report of each shard would be a square of their number.
constexpr int kShardsWithNames = 10;

struct Invocation {
  const RunOptions& options;
  const Session& session;
  const std::vector<Case>& cases;
  LauncherOptions launcher;
  RunInfo info;
};

int ExecuteAll(Invocation& invocation) {
  const RunOptions& options = invocation.options;
  const auto begin = std::chrono::steady_clock::now();
  ReservedRoom room(invocation.info.output_dir, options.repeat * ReportBytes(invocation.cases));
  ConsoleReport console(std::cout, ConsoleOptionsOf(invocation.options.common));
  const int cases = static_cast<int>(invocation.cases.size());
  console.Begin(invocation.info, cases * options.repeat,
                CountRuns(invocation.cases) * options.repeat);
  const std::size_t picture_bytes =
      options.each_seed ? 0
                        : PictureBytesOfRun(CountRuns(invocation.cases) * options.repeat,
                                            invocation.cases.size());
  std::vector<Verdict> verdicts;
  CampaignResult last;
  bool left_folders = false;
  for (int round = 1; round <= options.repeat; ++round) {
    LauncherOptions launcher = invocation.launcher;
    if (options.repeat > 1) launcher.output_dir += "/repeat-" + std::to_string(round);
    Campaign campaign(invocation.cases, invocation.session.description, launcher,
                      {.stop_early = !options.full,
                       .fail_fast = options.fail_fast,
                       .verify_determinism = options.verify_determinism,
                       .keep = options.keep,
                       .picture_bytes = picture_bytes});
    last = campaign.Execute(
        [&](const Verdict& verdict) {
          console.Finished(verdict);
          std::cout << std::flush;  // a pipe or a file sees each case when it ends, too
        },
        [&](int running, int done, int total) { console.Progress(running, done, total); });
    invocation.info.runs += last.runs;
    invocation.info.unjudged += last.unjudged;
    invocation.info.cpu_seconds += last.unjudged_cpu_seconds;
    left_folders = left_folders || last.left_folders;
    std::move(last.verdicts.begin(), last.verdicts.end(), std::back_inserter(verdicts));
    if (last.interrupted || (options.fail_fast && last.unjudged > 0)) break;
  }
  for (const Verdict& verdict : verdicts) invocation.info.cpu_seconds += verdict.cpu_seconds;
  invocation.info.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  room.Release();
  const WrittenReports written =
      WriteReports(options, invocation.info.output_dir, verdicts, invocation.info);
  console.End(verdicts, invocation.info, written.files);
  std::cout << std::flush;
  // A verdict of each seed is a step of a search, not an answer to compare.
  const bool is_empty = invocation.cases.empty();
  if (!options.each_seed && !is_empty) AddToHistory(options.history, verdicts, invocation.info);
  if (const int unjudged = invocation.info.unjudged; unjudged > 0) {
    std::cerr << "trainwreck: " << unjudged << (unjudged == 1 ? " case was" : " cases were")
              << " cut off without a verdict ("
              << (last.interrupted ? "interrupted" : "--fail-fast") << ")\n";
  }
  if (left_folders) {
    std::cerr << "trainwreck: the folders of runs were left in " << invocation.info.output_dir
              << "\n";
  }
  if (last.interrupted) return kExitInterrupted;
  const int status = GatedStatus({options.require, options.max_skips}, verdicts);
  if (!written.are_all && status != kExitFailed) return kExitInfrastructure;
  // Whether anything at all was run is a question to all shards together.
  const bool is_shard = options.selection.shard_count > 1;
  return is_shard && status == kExitNothingRun ? static_cast<int>(kExitPassed) : status;
}

// As reports and the history have it.
std::string NameOf(const TargetDescription& target) { return target.name + " " + target.version; }

int NothingToRun(const Chosen& chosen, const RunOptions& options) {
  const SelectionOptions& selection = options.selection;
  std::string words;
  if (!selection.keyword.empty()) words += " -k " + selection.keyword;
  if (!selection.tag.empty()) words += " -t " + selection.tag;
  for (const std::string& point : options.points) words += " --point " + point;
  std::cerr << "trainwreck: nothing to run: the selection" << words << " leaves none of "
            << chosen.planned << " cases; 'trainwreck list' shows them\n";
  return options.require.empty() ? kExitNothingRun : kExitRequirement;
}

// More shards than cases are no mistake of this one: it has reports, though empty ones.
void SayEmptyShard(const Chosen& chosen, const SelectionOptions& selection) {
  std::cerr << "trainwreck: SHARD " << selection.shard_index << "/" << selection.shard_count
            << " IS EMPTY: " << chosen.selected.size()
            << (chosen.selected.size() == 1 ? " case is" : " cases are") << " fewer than "
            << selection.shard_count << " shards, so this one proves nothing; use fewer shards\n";
}

PlanOptions PlanOptionsFor(const RunOptions& options, const TargetDescription& target) {
  PlanOptions plan;
  plan.seeds = options.seeds;
  plan.overrides = ParseOverrides(options.set, target);
  plan.each_seed = options.each_seed;
  plan.control_only = options.control_only;
  for (int seed : options.only_seeds) {
    if (seed < 0) throw UsageError("--seed " + std::to_string(seed) + ": seeds count from 0");
    plan.seeds = std::max(plan.seeds, seed + 1);
  }
  return plan;
}

// What `git bisect run` understands: 0 good, 1 bad, 125 cannot be tested, above 127 give up.
int BisectCode(int status) {
  constexpr int kSkip = 125, kGiveUp = 128;
  switch (status) {
    case kExitPassed:
    case kExitFailed:
    case kExitInterrupted:
      return status;
    case kExitUsage:
    case kExitInternal:
      return kGiveUp;
    default:
      return kSkip;
  }
}

int RunCases(const RunOptions& run) {
  const Session session = OpenSession(run.common, /*builds=*/!run.dry_run);
  const Chosen chosen =
      ChooseCases(session, run.selection, PlanOptionsFor(run, session.description), run.points);
  const bool is_empty_shard = chosen.cases.empty() && !chosen.selected.empty();
  if (is_empty_shard) SayEmptyShard(chosen, run.selection);
  if (chosen.cases.empty() && !is_empty_shard) return NothingToRun(chosen, run);
  if (run.dry_run) {
    PrintPlan(std::cout, chosen.cases);
    return kExitPassed;
  }
  const bool is_restricted = !run.arms.empty() || !run.only_seeds.empty();
  if (is_restricted) CheckArmNames(chosen.cases, run.arms);
  if (!is_restricted) CheckHistory(run.history);
  for (const ReportRequest& report : run.reports) CheckWritable(report.path, "--report");
  if (!run.on.empty()) {
    return RunOnSlurm(run, static_cast<int>(chosen.cases.size()), NameOf(session.description));
  }
  // A search makes many invocations, and the first has shown that the program works.
  if (!run.each_seed) RequirePreflight(run.common, session, chosen.cases);
  WarnOfOthersOnGpus(chosen.cases, session.description.devices);
  const std::string output = MakeOutputFolder(run.output, /*is_latest=*/!is_restricted);
  CheckWritable(output + "/verdicts.json", "--output");
  StoreDescription(output, session.description);
  LauncherOptions launcher;
  launcher.target = session.target;
  launcher.isolation = run.exec ? Isolation::kExec : Isolation::kFork;
  launcher.cores = run.cores;
  launcher.target.device_limits.runs = run.gpu_runs;
  launcher.output_dir = std::filesystem::absolute(output).lexically_normal().string();
  if (is_restricted) {
    return ReadArms(chosen.cases, {run.arms, run.only_seeds}, session.description, launcher);
  }
  RunInfo info;
  info.version = kVersion;
  info.command_line = run.common.command_line;
  info.target = NameOf(session.description);
  info.target_note = session.target_note;
  info.target_digest = DigestOfTarget(session.target);
  const CommitState commit = CurrentCommit();
  info.commit = commit.hash;
  info.is_dirty = commit.is_dirty;
  info.environment = MachineEnvironment();
  info.environment.insert(session.target.fingerprint.begin(), session.target.fingerprint.end());
  info.devices = DevicesOf(chosen.cases, session.description);
  info.isolation = run.exec || !session.target.has_fork_server ? "exec" : "fork";
  info.started_utc = UtcNow();
  info.host = HostName();
  info.selection_digest = chosen.selection_digest;
  info.selected = static_cast<int>(chosen.selected.size());
  if (run.selection.shard_index <= kShardsWithNames) info.selected_cases = chosen.selected;
  info.output_dir = output;
  info.cores = run.cores > 0 ? run.cores : UsableCores();
  Invocation invocation{run, session, chosen.cases, launcher, info};
  return ExecuteAll(invocation);
}

int RunVerb(const RunOptions& options) {
  if (options.control_only && !options.each_seed) {
    throw UsageError("--control-only requires --each-seed");
  }
  CheckSlurmOptions(options);
  std::optional<CleanOutput> clean;
  if (options.dry_run || !options.arms.empty() || !options.only_seeds.empty()) {
    clean.emplace(std::cout);
  }
  if (!options.bisect_codes) return RunCases(options);
  try {
    return BisectCode(RunCases(options));
  } catch (const UsageError& error) {
    std::cerr << "trainwreck: " << error.what() << "\n";
    return BisectCode(kExitUsage);
  } catch (const ConfigurationError& error) {  // a commit without a target that works, say
    std::cerr << "trainwreck: " << error.what() << "\n";
    return BisectCode(kExitInvalid);
  } catch (const std::system_error& error) {
    std::cerr << "trainwreck: " << error.what() << "\n";
    return BisectCode(kExitInfrastructure);
  }
}

void ParseSeeds(const std::string& text, RunOptions& run) {
  int first = 0, end = 0, used = 0;
  if (std::sscanf(text.c_str(), "%d:%d%n", &first, &end, &used) != 2 ||
      used != static_cast<int>(text.size()) || first < 0 || end <= first || end - first > 10000) {
    throw BadValue("'" + text + "' is no range: say FROM:TO, as 0:5");
  }
  run.each_seed = {first, end};
}

const VerbRegistration registration("run", "Run scenarios and judge them", kFirst, DeclareRun,
                                    RunVerb, /*prints_colors=*/true);

}  // namespace

int GatedStatus(const Gates& gates, const std::vector<Verdict>& verdicts) {
  const bool met = MeetsRequirements(gates, verdicts);
  const int status = ExitCode(verdicts);
  if (met || status == kExitFailed || status == kExitInfrastructure) return status;
  return kExitRequirement;
}

void DeclareRun(VerbArguments& arguments, RunOptions& options) {
  arguments.Selection(options.selection);
  arguments.Shard(options.selection);
  arguments.Cores(options.cores);
  arguments.Option("--gpu-runs", options.gpu_runs, "Runs on one GPU at a time [4]", "N")
      .Between(1, 1024);
  arguments.Seeds(options.seeds);
  arguments.Set(options.set);
  arguments.Flag("--fail-fast", options.fail_fast, "Stop at the first case that does not pass");
  arguments.Option("--repeat", options.repeat, "Run all so many times", "N").Between(1, 100000);
  arguments.Results(options.require, options.max_skips, options.reports, options.html);
  arguments.Option("--output", options.output,
                   "Folder for traces and reports [.trainwreck/runs/<UTC time>]", "DIR");
  arguments.HistoryFile(options.history);
  arguments.Flag("--dry-run", options.dry_run,
                 "Print what would run, and each arm's changes; run nothing");
  arguments.Isolation(options.exec);
  arguments.Flag("--verify-determinism", options.verify_determinism,
                 "Run a sample of each case twice and compare bit by bit");
  arguments.Flag("--full", options.full, "Never stop a run early when its checks are decided");
  arguments.Preflight(options.common);
  arguments.Choice<KeepRuns>(
      "--keep", options.keep,
      {{"all", KeepRuns::kAll}, {"failed", KeepRuns::kFailed}, {"none", KeepRuns::kNone}},
      "Run folders to keep: all, failed or none [failed]", "WHICH");
  arguments.Option("--arm", options.arms, "Only this arm: prints readings, gives no verdict",
                   "ARM");
  arguments.Option("--seed", options.only_seeds,
                   "Only this seed: prints readings, gives no verdict", "SEED");
  arguments.Parsed(
      "--each-seed", [&options](const std::string& text) { ParseSeeds(text, options); },
      "Judge each of the seeds FROM to TO - 1 by itself, as the case NAME@SEED", "FROM:TO");
  arguments.Flag("--control-only", options.control_only,
                 "With --each-seed: judge control alone; of the other arms only those run that its "
                 "checks name");
  arguments.Flag("--bisect-codes", options.bisect_codes,
                 "Exit as `git bisect run` expects: 0 good, 1 bad, 125 cannot be tested");
  arguments.Option("--point", options.points, "Only this point of the matrix", "POINT");
  arguments
      .Option("--on", options.on, "Where: slurm runs the shards as one job array, then merges them",
              "slurm")
      .OneOf({"slurm"});
  arguments.Option("--shards", options.shards, "With --on: tasks of the job array", "N")
      .Between(1, 1000000);
  arguments.Option("--sbatch", options.sbatch,
                   "With --on slurm: an option of sbatch, as partition=gpu or time=2:00:00; may be "
                   "repeated",
                   "OPTION");
  arguments.Common(options.common);
}

}  // namespace trainwreck
