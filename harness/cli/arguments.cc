#include "harness/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "harness/cli/verbs/bisect_arguments.h"
#include "harness/session/session.h"
#include "harness/text/nearest.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {
namespace {

constexpr const char* kIntroduction =
    "Breaks training runs on purpose and judges whether the symptoms appear and the fixes work.";

constexpr const char* kFooter =
    "Exit status: 0 all passed, 1 failed, 2 bad command line, 3 invalid scenario or target, 4 "
    "nothing run,\n"
    "5 inconclusive, 6 --require or --max-skips violated, 7 infrastructure, 70 internal, 130 "
    "interrupted.\n"
    "`trainwreck explain NAME` explains scenarios, faults, signals, recipe keys, verdicts and exit "
    "statuses.";

const std::vector<std::string>& Verbs() {
  static const std::vector<std::string> verbs = {
      "run",     "list",     "validate", "explain",  "doctor",  "check",   "judge",
      "report",  "rerun",    "new",      "schema",   "bisect",  "dose",    "matrix",
      "checkup", "lr-range", "history",  "baseline", "compare", "version", "help"};
  return verbs;
}

CLI::Option* Repeatable(CLI::Option* option) {
  // Without this, CLI11 lets one `--set` swallow every following word.
  return option->allow_extra_args(false);
}

void AddCommon(CLI::App* verb, CommonOptions& common) {
  verb->add_option("--target", common.target,
                   "Program that trains, or a target of trainwreck.yaml [$TRAINWRECK_TARGET, else "
                   "the default "
                   "of trainwreck.yaml, else trainwreck-trainer beside this one]")
      ->type_name("PATH|NAME");
  verb->add_option("--scenarios-root", common.scenarios_root,
                   "Folder that names of scenarios count from [`scenarios`, here or above]")
      ->type_name("DIR");
  static const std::map<std::string, UseColor> modes = {
      {"auto", UseColor::kAuto}, {"always", UseColor::kAlways}, {"never", UseColor::kNever}};
  verb->add_option("--color", common.color, "auto, always or never [auto]")
      ->transform(CLI::CheckedTransformer(modes).description(""))
      ->type_name("WHEN");
  verb->add_flag("-v,--verbose", common.verbose, "Say more");
}

void ParseShard(const std::string& text, SelectionOptions& selection) {
  int index = 0, count = 0, used = 0;
  if (std::sscanf(text.c_str(), "%d/%d%n", &index, &count, &used) != 2 ||
      used != static_cast<int>(text.size()) || count < 1 || index < 1 || index > count) {
    throw CLI::ValidationError("--shard",
                               "'" + text + "' is no shard: say i/n with 1 <= i <= n, as 2/4");
  }
  selection.shard_index = index;
  selection.shard_count = count;
}

void AddSelection(CLI::App* verb, SelectionOptions& selection) {
  verb->add_option(
      "PATH", selection.paths,
      "Files, folders, names (nan/lr-too-high, 'nan/lr-too-high[sgd]', 'nan/*') [scenarios]");
  verb->add_option("-k", selection.keyword, "Only cases whose name matches: 'nan and not adamw'")
      ->type_name("EXPR");
  verb->add_option("-t,--tag", selection.tag, "Only scenarios whose tags match: 'smoke or gpt'")
      ->type_name("EXPR");
}

std::vector<ReportRequest> ParseReports(const std::vector<std::string>& texts,
                                        const std::vector<std::string>& kinds) {
  std::string known;
  for (const std::string& kind : kinds) known += (known.empty() ? "" : ", ") + kind;
  std::vector<ReportRequest> requests;
  for (const std::string& text : texts) {
    std::size_t begin = 0;
    while (begin <= text.size()) {
      std::size_t end = std::min(text.find(',', begin), text.size());
      std::string item = text.substr(begin, end - begin);
      std::size_t equals = item.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
        throw CLI::ValidationError("--report",
                                   "'" + item + "' is no report: say KIND=FILE, as junit=out.xml");
      }
      std::string kind = item.substr(0, equals);
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
        throw CLI::ValidationError(
            "--report",
            "unknown kind '" + kind + "'" + NearestHint(kind, kinds) + "; there are " + known);
      }
      requests.push_back({kind, item.substr(equals + 1)});
      begin = end + 1;
    }
  }
  return requests;
}

// `of_stored`: of an invocation that is over, whose traces can be written, too.
void AddReports(CLI::App* verb, std::vector<ReportRequest>& reports, bool of_stored) {
  std::vector<std::string> kinds = {"json", "junit", "markdown"};
  if (of_stored) kinds.push_back(kTensorBoard);
  CLI::Option* option = Repeatable(verb->add_option_function<std::vector<std::string>>(
      "--report",
      [&reports, kinds](const std::vector<std::string>& texts) {
        reports = ParseReports(texts, kinds);
      },
      std::string("Write reports: junit=FILE, json=FILE, markdown=FILE") +
          (of_stored ? ", tensorboard=DIR" : "") + "; several with commas"));
  option->type_name("KIND=FILE,...");
  if (of_stored) option->required();
}

void ParseSeeds(const std::string& text, RunOptions& run) {
  int first = 0, end = 0, used = 0;
  if (std::sscanf(text.c_str(), "%d:%d%n", &first, &end, &used) != 2 ||
      used != static_cast<int>(text.size()) || first < 0 || end <= first || end - first > 10000) {
    throw CLI::ValidationError("--each-seed", "'" + text + "' is no range: say FROM:TO, as 0:5");
  }
  run.each_seed = {first, end};
}

void AddIsolation(CLI::App* verb, bool& exec) {
  static const std::map<std::string, bool> kinds = {{"fork", false}, {"exec", true}};
  verb->add_option("--isolate", exec,
                   "fork (from a warm process) or exec (a fresh process each run) [fork]")
      ->transform(CLI::CheckedTransformer(kinds).description(""))
      ->type_name("HOW");
}

void AddHistoryFile(CLI::App* verb, std::string& file) {
  verb->add_option("--history", file,
                   "File of the history, or none [$TRAINWRECK_HISTORY, else "
                   ".trainwreck/history.db]")
      ->type_name("FILE");
}

void AddCores(CLI::App* verb, int& cores) {
  verb->add_option("-j,--cores", cores, "Cores to use [all that this process may use]")
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N");
}

void AddSet(CLI::App* verb, std::vector<std::string>& set) {
  Repeatable(verb->add_option("--set", set, "Change the recipe of every run; may be repeated"))
      ->type_name("KEY=VALUE");
}

void AddPreflight(CLI::App* verb, CommonOptions& common) {
  verb->add_flag_callback(
      "--no-preflight", [&common] { common.preflight = false; },
      "Do not try the program and its signals before the first run");
}

void AddRun(CLI::App& app, Options& options) {
  CLI::App* verb = app.add_subcommand("run", "Run scenarios and judge them");
  RunOptions& run = options.run;
  AddSelection(verb, run.selection);
  verb->add_option_function<std::string>(
          "--shard", [&run](const std::string& text) { ParseShard(text, run.selection); },
          "Only the i-th of n parts of the cases")
      ->type_name("i/n");
  AddCores(verb, run.cores);
  verb->add_option("--seeds", run.seeds, "Seeds per arm [as the scenario says]")
      ->check(CLI::Range(1, 10000).description(""))
      ->type_name("N");
  AddSet(verb, run.set);
  verb->add_flag("--fail-fast", run.fail_fast, "Stop at the first case that does not pass");
  verb->add_option("--repeat", run.repeat, "Run all so many times")
      ->check(CLI::Range(1, 100000).description(""))
      ->type_name("N");
  Repeatable(
      verb->add_option("--require", run.require,
                       "This scenario must have run and passed, else exit 6; may be repeated"))
      ->type_name("NAME");
  verb->add_option("--max-skips", run.max_skips, "More skipped cases than this: exit 6")
      ->type_name("N");
  AddReports(verb, run.reports, false);
  verb->add_option("--output", run.output,
                   "Folder for traces and reports [.trainwreck/runs/<UTC time>]")
      ->type_name("DIR");
  AddHistoryFile(verb, run.history);
  verb->add_flag("--dry-run", run.dry_run,
                 "Print what would run, and each arm's changes; run nothing");
  AddIsolation(verb, run.exec);
  verb->add_flag("--verify-determinism", run.verify_determinism,
                 "Run a sample of each case twice and compare bit by bit");
  verb->add_flag("--full", run.full, "Never stop a run early when its checks are decided");
  AddPreflight(verb, options.common);
  static const std::map<std::string, KeepRuns> keeps = {
      {"all", KeepRuns::kAll}, {"failed", KeepRuns::kFailed}, {"none", KeepRuns::kNone}};
  verb->add_option("--keep", run.keep, "Run folders to keep: all, failed or none [failed]")
      ->transform(CLI::CheckedTransformer(keeps).description(""))
      ->type_name("WHICH");
  Repeatable(
      verb->add_option("--arm", run.arms, "Only this arm: prints readings, gives no verdict"))
      ->type_name("ARM");
  Repeatable(verb->add_option("--seed", run.only_seeds,
                              "Only this seed: prints readings, gives no verdict"))
      ->type_name("SEED");
  verb->add_option_function<std::string>(
          "--each-seed", [&run](const std::string& text) { ParseSeeds(text, run); },
          "Judge each of the seeds FROM to TO - 1 by itself, as the case NAME@SEED")
      ->type_name("FROM:TO");
  verb->add_flag("--bisect-codes", run.bisect_codes,
                 "Exit as `git bisect run` expects: 0 good, 1 bad, 125 cannot be tested");
  Repeatable(verb->add_option("--point", run.points, "Only this point of the matrix"))
      ->type_name("POINT");
  AddCommon(verb, options.common);
}

void AddList(CLI::App& app, Options& options) {
  CLI::App* verb =
      app.add_subcommand("list", "List scenarios, faults, signals, recipe keys or events");
  ListOptions& list = options.list;
  verb->add_option("WHAT", list.what, "scenarios, faults, signals, recipe or events [scenarios]")
      ->check(
          CLI::IsMember({"scenarios", "faults", "signals", "recipe", "events"}).description(""));
  verb->add_option("--format", list.format, "text, json or bazel (scenarios only) [text]")
      ->check(CLI::IsMember({"text", "json", "bazel"}).description(""))
      ->type_name("FORMAT");
  AddSelection(verb, list.selection);
  AddCommon(verb, options.common);
}

void AddSmallVerbs(CLI::App& app, Options& options) {
  CLI::App* validate = app.add_subcommand("validate", "Check scenario files; start nothing");
  AddSelection(validate, options.validate.selection);
  AddCommon(validate, options.common);

  CLI::App* explain = app.add_subcommand(
      "explain",
      "Explain a scenario, fault, signal, event, recipe key, verdict class or exit status");
  explain->add_option("NAME", options.explain.name, "What to explain")->required();
  AddCommon(explain, options.common);

  CLI::App* doctor = app.add_subcommand("doctor", "Check this machine and the target");
  AddCommon(doctor, options.common);

  CLI::App* schema = app.add_subcommand("schema", "Print the JSON Schema of scenario files");
  AddCommon(schema, options.common);

  CLI::App* create = app.add_subcommand("new", "Write a commented skeleton: a scenario or a fault");
  create->add_option("KIND", options.create.kind, "scenario or fault")
      ->check(CLI::IsMember({"scenario", "fault"}).description(""))
      ->required();
  create->add_option("NAME", options.create.name, "family/name of a scenario, site.name of a fault")
      ->required();
  AddCommon(create, options.common);
}

std::vector<std::pair<std::string, std::string>> ParseArms(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> arms;
  for (const std::string& text : texts) {
    std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw CLI::ValidationError("--arm",
                                 "'" + text + "' is no arm: say NAME=FOLDER, as control=runs/7");
    }
    arms.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return arms;
}

void AddStoredVerbs(CLI::App& app, Options& options) {
  CLI::App* check = app.add_subcommand("check", "Read a formula over a stored trace");
  check->add_option("TRACE", options.check.trace, "Folder of a run")->required();
  Repeatable(check->add_option("--assert", options.check.formulas, "Formula; may be repeated"))
      ->type_name("FORMULA")
      ->required();
  Repeatable(
      check->add_option_function<std::vector<std::string>>(
          "--arm",
          [&options](const std::vector<std::string>& texts) {
            options.check.arms = ParseArms(texts);
          },
          "Folder of a run that the formula calls NAME [control, reference: the stored ones]"))
      ->type_name("NAME=DIR");
  check->add_option("--format", options.check.format, "text or json [text]")
      ->check(CLI::IsMember({"text", "json"}).description(""))
      ->type_name("FORMAT");
  check->add_flag("--all-steps", options.check.all_steps,
                  "Truth and margins at every step, as inside a temporal operator");
  check->add_flag("--finished", options.check.finished,
                  "The run is over, though its trace has no `end` record");
  check
      ->add_option("--steps", options.check.steps,
                   "Steps that the run plans [as stored, or as its `end` record says]")
      ->check(CLI::Range(1, 10000000).description(""))
      ->type_name("N");
  AddCommon(check, options.common);

  CLI::App* judge = app.add_subcommand("judge", "Judge kept runs by the scenarios as they are now");
  judge->add_option("RUN", options.judge.run, "Folder of the invocation, or latest")->required();
  AddSelection(judge, options.judge.selection);
  judge->add_option("--seeds", options.judge.seeds, "Seeds per arm [as the scenario says]")
      ->check(CLI::Range(1, 10000).description(""))
      ->type_name("N");
  AddSet(judge, options.judge.set);
  AddReports(judge, options.judge.reports, false);
  judge->add_option("--output", options.judge.output, "Folder for verdicts.json [RUN/judged]")
      ->type_name("DIR");
  AddCommon(judge, options.common);

  CLI::App* report = app.add_subcommand("report", "Write reports of a finished invocation");
  report->add_option("RUN", options.report.run, "Folder of the invocation, or latest")->required();
  AddReports(report, options.report.reports, true);
  AddCommon(report, options.common);

  CLI::App* rerun = app.add_subcommand("rerun", "Repeat one stored run and compare it bit by bit");
  rerun
      ->add_option("RUN", options.rerun.run,
                   "Folder of a run, or its id as nan/lr-too-high/sgd/fault/3")
      ->required();
  rerun->add_option("--output", options.rerun.output, "Folder for the new trace")->type_name("DIR");
  AddIsolation(rerun, options.rerun.exec);
  AddCommon(rerun, options.common);
}

void AddDose(CLI::App& app, Options& options) {
  CLI::App* verb = app.add_subcommand(
      "dose", "Find the weakest fault that shows, and the strongest that each remedy holds");
  DoseOptions& dose = options.dose;
  verb->add_option("SCENARIO", dose.scenario, "File or name, as nan/lr-too-high or 'nan/x[sgd]'")
      ->required();
  verb->add_option("--param", dose.parameter, "What to vary, as inject.hot_lr.with.factor")
      ->type_name("PATH")
      ->required();
  verb->add_option("--from", dose.from, "The weakest dose [the least that the fault takes]")
      ->type_name("VALUE");
  verb->add_option("--to", dose.to, "The strongest dose [the most that the fault takes]")
      ->type_name("VALUE");
  verb->add_option("--levels", dose.levels, "How many doses, ends included [33]")
      ->check(CLI::Range(3, 1025).description(""))
      ->type_name("N");
  verb->add_flag("--linear", dose.linear, "Even steps, not of the logarithm");
  verb->add_option("--confidence", dose.confidence, "Name a dose only when this sure [0.95]")
      ->check(CLI::Range(0.5, 0.9999).description(""))
      ->type_name("P");
  verb->add_option("--max-runs", dose.max_runs, "Seeds per question at most [400]")
      ->check(CLI::Range(1, 100000).description(""))
      ->type_name("N");
  verb->add_option("-j,--jobs", dose.jobs, "Cores to use [all that this process may use]")
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N");
  verb->add_option("--output", dose.output, "Folder for dose.json [.trainwreck/runs/<UTC time>]")
      ->type_name("DIR");
  AddPreflight(verb, options.common);
  AddCommon(verb, options.common);
}

void AddMatrix(CLI::App& app, Options& options) {
  CLI::App* verb = app.add_subcommand(
      "matrix", "Read every symptom over every fault and control: which tell faults apart?");
  MatrixOptions& matrix = options.matrix;
  AddSelection(verb, matrix.selection);
  verb->add_option("--seeds", matrix.seeds, "Seeds per arm [as the scenario says]")
      ->check(CLI::Range(1, 10000).description(""))
      ->type_name("N");
  verb->add_option("--control-seeds", matrix.control_seeds,
                   "Seeds of control arms [as many as of the fault]")
      ->check(CLI::Range(1, 10000).description(""))
      ->type_name("N");
  AddSet(verb, matrix.set);
  AddCores(verb, matrix.cores);
  verb->add_option("--output", matrix.output,
                   "Folder for matrix.json and matrix.html [.trainwreck/runs/<UTC time>]")
      ->type_name("DIR");
  verb->add_flag("--keep", matrix.keep, "Keep the runs, so that --from can read them again");
  verb->add_option("--from", matrix.from, "Read the runs that --keep left here; run nothing")
      ->type_name("DIR");
  AddIsolation(verb, matrix.exec);
  AddPreflight(verb, options.common);
  AddCommon(verb, options.common);
}

void AddArm(CLI::App* verb, std::string& arm) {
  verb->add_option("--arm", arm, "The recipe as it is (control), or with its fault [control]")
      ->check(CLI::IsMember({"control", "fault"}).description(""))
      ->type_name("control|fault");
}

void AddReportFile(CLI::App* verb, std::string& file) {
  verb->add_option("--report", file, "Write a report as JSON")->type_name("FILE");
}

void AddCheckup(CLI::App& app, Options& options) {
  CLI::App* verb = app.add_subcommand(
      "checkup",
      "Go through the five-minute checklist; which known fault does a recipe look like?");
  CheckupOptions& checkup = options.checkup;
  verb->add_option("RECIPE", checkup.paths,
                   "A scenario's file or name, as nan/x or 'nan/x[sgd]'; with --score any");
  AddArm(verb, checkup.arm);
  verb->add_option("--seeds", checkup.seeds, "Seeds to look at [1]")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  AddSet(verb, checkup.set);
  AddCores(verb, checkup.cores);
  verb->add_flag(
      "--score", checkup.score,
      "Check up on all faults and controls, one seed at a time, and count right answers");
  AddReportFile(verb, checkup.report);
  AddPreflight(verb, options.common);
  AddCommon(verb, options.common);
}

void AddLrRange(CLI::App& app, Options& options) {
  CLI::App* verb = app.add_subcommand(
      "lr-range", "Learning-rate range test: run a recipe at many rates and suggest one");
  LrRangeOptions& range = options.lr_range;
  verb->add_option("RECIPE", range.recipe, "A scenario's file or name, as nan/x or 'nan/x[sgd]'")
      ->required();
  AddArm(verb, range.arm);
  verb->add_option("--from", range.from, "The lowest rate [the recipe's / 1000]")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("RATE");
  verb->add_option("--to", range.to, "The highest rate [the recipe's x 100]")
      ->check(CLI::PositiveNumber.description(""))
      ->type_name("RATE");
  verb->add_option("--rates", range.rates, "How many rates, ends included [16]")
      ->check(CLI::Range(3, 1000).description(""))
      ->type_name("N");
  verb->add_option("--seeds", range.seeds, "Seeds per rate [2]")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  verb->add_option("--steps", range.steps, "Steps of each run [as the recipe says]")
      ->check(CLI::Range(5, 100000).description(""))
      ->type_name("N");
  AddSet(verb, range.set);
  AddCores(verb, range.cores);
  AddReportFile(verb, range.report);
  AddPreflight(verb, options.common);
  AddCommon(verb, options.common);
}

void AddCompare(CLI::App& app, Options& options) {
  CLI::App* verb = app.add_subcommand("compare", "Compare two runs, commits or verdicts.json");
  CompareVerbOptions& compare = options.compare;
  const std::string kinds = "a run's number, latest, baseline[:NAME], a revision, a file";
  verb->add_option("A", compare.a, "Before: " + kinds + " [baseline]");
  verb->add_option("B", compare.b, "After: the same [latest]");
  AddHistoryFile(verb, compare.file);
  verb->add_option("--confidence", compare.confidence,
                   "That no margin is called different without being so [0.95]")
      ->check(CLI::Range(0.51, 0.9999).description(""))
      ->type_name("P");
  verb->add_option("--shift", compare.shift,
                   "Smallest shift of a margin that matters, in standard deviations of A's seeds "
                   "[2]")
      ->check(CLI::Range(0.1, 100.0).description(""))
      ->type_name("SIGMA");
  verb->add_option("--max-slowdown", compare.max_slowdown,
                   "A step time that grew by more than this ratio is worse")
      ->check(CLI::Range(0.01, 1000.0).description(""))
      ->type_name("RATIO");
  verb->add_option("--max-memory", compare.max_memory,
                   "A peak memory that grew by more than this ratio is worse")
      ->check(CLI::Range(0.01, 1000.0).description(""))
      ->type_name("RATIO");
  verb->add_flag("--only-common", compare.only_common,
                 "Cases that B lacks are not gone: B ran a part of A's cases");
  verb->add_flag("--accept-changes", compare.accept_changes,
                 "Exit 0 also when something changed that is not known to be worse");
  verb->add_flag_callback(
      "--more-seeds",
      [&compare] {
        if (compare.more_seeds == 0) compare.more_seeds = -1;  // as many as are asked for
      },
      "Run the seeds that are missing, and compare anew");
  verb->add_option("--max-more-seeds", compare.more_seeds,
                   "The same, but at most N seeds of each side")
      ->check(CLI::Range(1, 10000).description(""))
      ->type_name("N");
  AddReports(verb, compare.reports, false);
  AddCommon(verb, options.common);
}

void AddHistoryVerbs(CLI::App& app, Options& options) {
  CLI::App* history = app.add_subcommand("history", "List what has been run");
  history->add_option("SCENARIO", options.history.scenario,
                      "Cases of this name or glob, instead of runs");
  history->add_option("--limit", options.history.limit, "Newest rows to show [20]")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N");
  history->add_option("--format", options.history.format, "text or json [text]")
      ->check(CLI::IsMember({"text", "json"}).description(""))
      ->type_name("FORMAT");
  AddHistoryFile(history, options.history.file);
  AddCommon(history, options.common);

  CLI::App* baseline = app.add_subcommand("baseline", "Set or show what others are compared with");
  baseline->add_option("ACTION", options.baseline.action, "set or show")
      ->check(CLI::IsMember({"set", "show"}).description(""))
      ->required();
  baseline->add_option("RUN", options.baseline.run,
                       "A run's number, latest, or a revision [latest]");
  baseline->add_option("--name", options.baseline.name, "Of the baseline [main]")
      ->type_name("NAME");
  AddHistoryFile(baseline, options.baseline.file);
  AddCommon(baseline, options.common);
}

std::vector<std::string> OptionNames(const CLI::App* verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// CLI11's own message, with the nearest name where something is unknown.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError)) return error.what();
  std::vector<std::string> extras = app.remaining(true);
  if (extras.empty()) return error.what();
  std::string extra = extras.front().substr(0, extras.front().find('='));
  if (extra.rfind('-', 0) == 0) {
    return "unknown option '" + extra + "'" + NearestHint(extra, OptionNames(verb));
  }
  return "unexpected argument '" + extra + "'";
}

int PrintHelp(CLI::App& app, const std::string& verb) {
  std::cout << (verb.empty() ? app.help() : app.get_subcommand(verb)->help());
  return kExitPassed;
}

int Complain(const std::string& message, const std::string& verb) {
  std::cerr << "trainwreck: " << message << "\n"
            << "try 'trainwreck " << (verb.empty() ? "" : verb + " ") << "--help'\n";
  return kExitUsage;
}

bool IsVerb(const std::string& word) {
  return std::find(Verbs().begin(), Verbs().end(), word) != Verbs().end();
}

// `help`, `help VERB`, `version`, nothing at all, and unknown verbs are answered before CLI11 sees
// them.
std::optional<int> AnswerDirectly(CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) {
    std::cerr << app.help();
    return kExitUsage;
  }
  const std::string& first = words.front();
  const bool asks_help = words.size() > 1 && (words[1] == "--help" || words[1] == "-h");
  if (asks_help && (first == "version" || first == "help")) return PrintHelp(app, first);
  if (first == "version" || first == "--version") {
    std::cout << "trainwreck " << kVersion << "\n";
    return kExitPassed;
  }
  if (first == "help" || first == "--help" || first == "-h") {
    std::string verb = words.size() > 1 ? words[1] : "";
    if (verb == "help" || verb == "version") verb = "";
    if (!verb.empty() && !IsVerb(verb)) {
      return Complain("no verb '" + verb + "'" + NearestHint(verb, Verbs()), "");
    }
    return PrintHelp(app, verb);
  }
  if (IsVerb(first)) return std::nullopt;
  if (first.rfind('-', 0) == 0) return Complain("say a verb first: '" + first + "' is none", "");
  return Complain("no verb '" + first + "'" + NearestHint(first, Verbs()), "");
}

}  // namespace

std::optional<int> ParseArguments(int argc, const char* const* argv, Options& options) {
  CLI::App app(kIntroduction, "trainwreck");
  app.footer(kFooter);
  app.require_subcommand(1);
  AddRun(app, options);
  AddList(app, options);
  AddSmallVerbs(app, options);
  AddStoredVerbs(app, options);
  AddCommon(AddBisect(app, options), options.common);
  AddDose(app, options);
  AddMatrix(app, options);
  AddCheckup(app, options);
  AddLrRange(app, options);
  AddHistoryVerbs(app, options);
  AddCompare(app, options);
  app.add_subcommand("version", "Print the version");
  app.add_subcommand("help", "Print this, or the help of a verb");

  std::vector<std::string> words(argv + 1, argv + argc);
  if (std::optional<int> status = AnswerDirectly(app, words)) return status;
  options.verb = words.front();
  options.bisect.paths = TakePaths(options.verb, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return PrintHelp(app, options.verb);
    return Complain(Explain(app, error), options.verb);
  }
  return std::nullopt;
}

}  // namespace trainwreck
