// trainwreck rerun: one stored run again, from its stored plan, compared with the stored trace bit
// by bit.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "harness/cli/verb.h"
#include "harness/judge/verdict.h"
#include "harness/process/interruption.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct RerunOptions {
  CommonOptions common;
  std::string run;
  std::string output;
  bool exec = false;
};

int LastStep(const RunTrace& trace) {
  int last = -1;
  for (int rank = 0; rank < trace.world_size; ++rank) last = std::max(last, trace.last_step(rank));
  return last;
}

// Drops what came after `steps` steps: a run that was stopped early is compared as far as it went.
void Shorten(RunTrace& trace, int steps) {
  for (auto& [key, series] : trace.series) {
    if (static_cast<int>(series.values.size()) <= steps) continue;
    series.values.resize(steps);
    series.present.resize(steps);
  }
}

void PrintExits(const RunResult& result) {
  for (const RankExit& exit : result.exits) {
    if (exit.code == 0) continue;
    std::cout << "  rank " << exit.rank << " attempt " << exit.attempt
              << (exit.signal != 0 ? ": killed by signal " + std::to_string(exit.signal)
                                   : ": exit code " + std::to_string(exit.code))
              << (exit.last_words.empty() ? "" : ": " + exit.last_words) << "\n";
  }
}

RunResult RunAgain(const Run& run, const LauncherOptions& options) {
  RunResult result;
  Launcher launcher(options);
  LauncherCallbacks callbacks;
  callbacks.finished = [&](const Run&, RunResult finished) { result = std::move(finished); };
  launcher.RunAll({&run}, callbacks);
  return result;
}

// Prints how the two runs compare; the exit status.
int Compare(const StoredRun& stored, RunTrace before, RunResult after) {
  const bool was_cut = stored.end == RunEnd::kDecided;
  const bool same_end =
      !stored.end || after.end == *stored.end || (was_cut && after.end == RunEnd::kCompleted);
  const int steps = std::min(LastStep(before), LastStep(after.trace)) + 1;
  const bool is_partial = was_cut || after.end != RunEnd::kCompleted;
  if (is_partial) {
    Shorten(before, steps);
    Shorten(after.trace, steps);
  }
  const std::string difference = CompareTraces(before, after.trace);
  if (!same_end) {
    std::cout << "ended otherwise: before '" << ToString(*stored.end) << "', now '"
              << ToString(after.end) << "'\n";
  }
  if (!difference.empty()) {
    std::cout << "not the same bits: " << difference << "\n";
  } else {
    std::cout << "same bits in all signals of " << steps << (steps == 1 ? " step" : " steps")
              << (is_partial ? " that both runs made\n" : "\n");
  }
  return same_end && difference.empty() ? kExitPassed : kExitFailed;
}

int RerunVerb(const RerunOptions& options) {
  const std::string folder = FindRunFolder(options.run);
  const StoredRun stored = LoadStoredRun(folder);
  const Session session = OpenSession(options.common, /*builds=*/true);
  std::vector<std::string> problems;
  RunTrace before = LoadTrace(folder, stored.run.ranks, stored.run.steps, &problems);
  for (const std::string& problem : problems)
    std::cerr << "trainwreck: stored trace: " << problem << "\n";
  LauncherOptions launcher;
  launcher.target = session.target;
  launcher.isolation = options.exec ? Isolation::kExec : Isolation::kFork;
  const std::string output = MakeOutputFolder(options.output, /*is_latest=*/false);
  launcher.output_dir = std::filesystem::absolute(output).lexically_normal().string();
  if (std::filesystem::weakly_canonical(launcher.output_dir + "/" + stored.run.id) ==
      std::filesystem::weakly_canonical(folder)) {
    throw UsageError("--output " + output + " would overwrite the stored run");
  }
  StoreDescription(output, session.description);
  RunResult after = RunAgain(stored.run, launcher);
  if (WasInterrupted()) return kExitInterrupted;
  if (!after.folder.empty()) StoreRun(stored.run, after);
  std::cout << stored.run.id << ": " << ToString(after.end)
            << (after.detail.empty() ? "" : ": " + after.detail) << "  (" << after.folder << ")\n";
  PrintExits(after);
  if (after.end == RunEnd::kInfrastructure) return kExitInfrastructure;
  return Compare(stored, std::move(before), std::move(after));
}

void Declare(VerbArguments& arguments, RerunOptions& options) {
  arguments
      .Positional("RUN", options.run, "Folder of a run, or its id as nan/lr-too-high/sgd/fault/3")
      .Required();
  arguments.Option("--output", options.output, "Folder for the new trace", "DIR");
  arguments.Isolation(options.exec);
  arguments.Common(options.common);
}

const VerbRegistration registration("rerun", "Repeat one stored run and compare it bit by bit",
                                    kStored, Declare, RerunVerb);

}  // namespace
}  // namespace trainwreck
