// trainwreck compare: two sides of the history, or two verdicts.json, against each other.
#include <iostream>
#include <optional>

#include "harness/bisect/more_seeds.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/run.h"
#include "harness/history/comparison.h"
#include "harness/history/hint.h"
#include "harness/history/missing_seeds.h"
#include "harness/pages/pages.h"
#include "harness/process/command.h"
#include "harness/session/recording.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct CompareVerbOptions {
  CommonOptions common;
  std::string file;
  std::string a = "baseline";
  std::string b = "latest";
  double confidence = 0.95;
  double shift = 2;
  double max_slowdown = 0;
  double max_memory = 0;
  bool only_common = false;
  bool accept_changes = false;
  int more_seeds = 0;  // so many more seeds at most are run, where they are missing; 0: none
  std::vector<ReportRequest> reports;
};

std::string ReportText(const std::string& kind, const Comparison& comparison) {
  if (kind == "markdown") return MarkdownText(comparison);
  const Json json = ToJson(comparison);
  if (kind == "html") return PageOf(json, kVersion);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void WriteReports(const CompareVerbOptions& options, const Comparison& comparison) {
  for (const ReportRequest& request : options.reports) {
    WriteWholeFile(request.path, ReportText(request.kind, comparison));
    std::cout << "# report: " << request.path << "\n";
  }
}

// What the recorded `trainwreck run` was told; empty: it was no such command.
std::optional<RecordedRun> ReadRecorded(const std::string& line) {
  std::vector<std::string> words = SplitShellWords(line);
  if (words.size() < 2 || words[1] != "run") return std::nullopt;
  words.erase(words.begin(), words.begin() + 2);
  RunOptions options;
  const bool is_read =
      ReadOptions(words, [&](VerbArguments& arguments) { DeclareRun(arguments, options); });
  if (!is_read) return std::nullopt;
  return RecordedRun{.common = options.common,
                     .paths = options.selection.paths,
                     .points = options.points,
                     .set = options.set,
                     .cores = options.cores,
                     .exec = options.exec,
                     .full = options.full};
}

CompareOptions OptionsFrom(const CompareVerbOptions& compare) {
  CompareOptions how;
  how.shift.confidence = compare.confidence;
  how.shift.relevant_shift = compare.shift;
  how.max_slowdown = compare.max_slowdown;
  how.max_memory = compare.max_memory;
  how.only_common = compare.only_common;
  how.accept_changes = compare.accept_changes;
  return how;
}

int CompareVerb(const CompareVerbOptions& options) {
  for (const ReportRequest& request : options.reports) {
    if (request.kind != "json" && request.kind != "markdown" && request.kind != "html") {
      throw UsageError("--report: compare writes json, markdown and html, no " + request.kind);
    }
  }
  Sides sides{LoadSide(options.a, options.file), LoadSide(options.b, options.file)};
  const CompareOptions how = OptionsFrom(options);
  Comparison comparison = Compare(sides.a, sides.b, how);
  if (options.more_seeds != 0) {
    const SeedsRequest request = {
        .history = options.file, .at_most = options.more_seeds, .read = ReadRecorded};
    try {
      if (AddMissingSeeds(sides, SeedsWanted(comparison), request, std::cout)) {
        comparison = Compare(sides.a, sides.b, how);
      }
    } catch (const Interrupted&) {
      return kExitInterrupted;
    }
  }
  comparison.hint = HintFor(comparison, options.b, FindHistory(options.file).get());
  std::cout << ConsoleText(comparison, options.common.verbose);
  WriteReports(options, comparison);
  return ExitCode(comparison);
}

void Declare(VerbArguments& arguments, CompareVerbOptions& options) {
  const std::string kinds = "a run's number, latest, baseline[:NAME], a revision, a file";
  arguments.Positional("A", options.a, "Before: " + kinds + " [baseline]");
  arguments.Positional("B", options.b, "After: the same [latest]");
  arguments.HistoryFile(options.file);
  arguments
      .Option("--confidence", options.confidence,
              "That no margin is called different without being so [0.95]", "P")
      .Between(0.51, 0.9999);
  arguments
      .Option("--shift", options.shift,
              "Smallest shift of a margin that matters, in standard deviations of A's seeds [2]",
              "SIGMA")
      .Between(0.1, 100.0);
  arguments
      .Option("--max-slowdown", options.max_slowdown,
              "A step time that grew by more than this ratio is worse", "RATIO")
      .Between(0.01, 1000.0);
  arguments
      .Option("--max-memory", options.max_memory,
              "A peak memory that grew by more than this ratio is worse", "RATIO")
      .Between(0.01, 1000.0);
  arguments.Flag("--only-common", options.only_common,
                 "Cases that B lacks are not gone: B ran a part of A's cases");
  arguments.Flag("--accept-changes", options.accept_changes,
                 "Exit 0 also when something changed that is not known to be worse");
  arguments.Flag(
      "--more-seeds",
      [&options] {
        if (options.more_seeds == 0) options.more_seeds = -1;  // as many as are asked for
      },
      "Run the seeds that are missing, and compare anew");
  arguments
      .Option("--max-more-seeds", options.more_seeds, "The same, but at most N seeds of each side",
              "N")
      .Between(1, 10000);
  arguments.Reports(options.reports);
  arguments.Common(options.common);
}

const VerbRegistration registration("compare", "Compare two runs, commits or verdicts.json",
                                    kKeeping, Declare, CompareVerb);

}  // namespace
}  // namespace trainwreck
