#include "harness/cli/verbs/bisect_arguments.h"

#include <CLI/CLI.hpp>

namespace trainwreck {
namespace {

// One value for each time that the option is named.
CLI::Option* Each(CLI::Option* option) { return option->allow_extra_args(false); }

void AddQuestion(CLI::App* verb, BisectOptions& bisect) {
  verb->add_option("SCENARIO", bisect.scenario, "File or name, as nan/lr-too-high or 'nan/x[sgd]'");
  verb->add_option("--test", bisect.test,
                   "Instead of a scenario: a shell command, run in each commit's worktree with "
                   "$TRAINWRECK_SEED; exit 0 good, 125 skip, other below 128 bad, 128 and above "
                   "end the bisection")
      ->type_name("CMD");
  verb->add_option("--test-limit", bisect.test_limit_seconds,
                   "A test that takes longer is ended and says nothing [7200]")
      ->check(CLI::Range(1, 10'000'000).description(""))
      ->type_name("SECONDS");
  Each(verb->add_option("--good,--old", bisect.goods, "A commit that passes; may be repeated"))
      ->type_name("REV");
  verb->add_option("--bad,--new", bisect.bad, "A commit that fails")->type_name("REV");
  Each(verb->add_option("--skip", bisect.skips,
                        "A commit, or a range as A..B, that cannot be tested; may be repeated"))
      ->type_name("REV");
  Each(verb->add_option("--mark", bisect.marks,
                        "What you know of a commit: REV=good, REV=bad or REV=skip; it is not run; "
                        "may be repeated"))
      ->type_name("REV=WORD");
  verb->add_flag("--first-parent", bisect.first_parent,
                 "Of a merge only the branch it was made on");
  verb->add_option("--term-old", bisect.term_old, "A word for good [good]")->type_name("WORD");
  verb->add_option("--term-new", bisect.term_new, "A word for bad [bad]")->type_name("WORD");
  verb->add_option("--metric", bisect.metric,
                   "Go by the margin of this formula, not by whether the scenario passes")
      ->type_name("FORMULA");
  verb->add_option("--arm", bisect.arm, "The arm that --metric is read in [control]")
      ->type_name("ARM");
  verb->footer(
      "-- PATH...: only commits that change one of these paths. `-- PATH` stands at the end.");
}

}  // namespace

CLI::App* AddBisect(CLI::App& app, Options& options) {
  CLI::App* verb = app.add_subcommand(
      "bisect", "Find the commit that broke a scenario or a test, through noise");
  BisectOptions& bisect = options.bisect;
  AddQuestion(verb, bisect);
  verb->add_option("--build", bisect.build,
                   "Shell command that builds a commit, run in its worktree")
      ->type_name("CMD");
  verb->add_option("--build-limit", bisect.build_limit_seconds,
                   "A build that takes longer is ended; its commit cannot be tested [7200]")
      ->check(CLI::Range(1, 10'000'000).description(""))
      ->type_name("SECONDS");
  Each(verb->add_option("--artifact", bisect.artifacts,
                        "File or folder that the build makes and runs need; may be repeated "
                        "[--target, if it is a binary]"))
      ->type_name("PATH");
  verb->add_option("--confidence", bisect.confidence, "Name a commit only when this sure [0.95]")
      ->check(CLI::Range(0.5, 0.9999).description(""))
      ->type_name("P");
  verb->add_flag("--no-flakes", bisect.no_flakes,
                 "You are certain that no run fails before the culprit: fewer runs are needed");
  verb->add_option("--max-runs", bisect.max_runs, "Give up after so many runs [1000]")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  verb->add_option("-j,--jobs", bisect.jobs, "Cores to use [all that this process may use]")
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N");
  verb->add_option("--json", bisect.json, "Write the result to this file as JSON")
      ->type_name("FILE");
  verb->add_option(
          "--between", bisect.between,
          "Instead of commits: which differences of two scenarios' recipes flip the verdict")
      ->expected(2)
      ->type_name("GOOD BAD");
  verb->add_flag("--fresh", bisect.fresh, "Forget what an earlier, interrupted bisection saw");
  verb->add_option("--replay", bisect.replay, "Go through a log again; run nothing")
      ->type_name("LOG");
  return verb;
}

std::vector<std::string> TakePaths(const std::string& verb, int& argc, const char* const* argv) {
  std::vector<std::string> paths;
  if (verb != "bisect") return paths;
  for (int i = 2; i < argc; ++i) {
    if (std::string(argv[i]) != "--") continue;
    paths.assign(argv + i + 1, argv + argc);
    argc = i;
  }
  return paths;
}

}  // namespace trainwreck
