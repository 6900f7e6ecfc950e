#include "harness/cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <utility>

#include "harness/cli/verb.h"
#include "harness/report/report.h"
#include "harness/session/session.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr const char* kIntroduction =
    "Breaks training runs on purpose and judges whether the symptoms appear and the fixes work.";

constexpr const char* kFooter =
    "Exit status: 0 all passed, 1 failed, 2 bad command line, 3 invalid scenario or target, 4 "
    "nothing run,\n"
    "5 inconclusive, 6 --require or --max-skips violated, 7 infrastructure, 8 changed (compare),\n"
    "70 internal, 130 interrupted.\n"
    "`trainwreck explain NAME` explains scenarios, faults, signals, recipe keys, verdicts and exit "
    "statuses.";

CLI::App* AppOf(void* verb) { return static_cast<CLI::App*>(verb); }
CLI::Option* OptionOf(void* option) { return static_cast<CLI::Option*>(option); }

template <typename T>
DeclaredOption Add(void* verb, const char* name, T& value, const std::string& doc,
                   const char* type) {
  return DeclaredOption(AppOf(verb)->add_option(name, value, doc)->type_name(type));
}

// Without this, CLI11 lets one `--set` swallow every following word.
template <typename T>
DeclaredOption AddEach(void* verb, const char* name, T& value, const char* doc, const char* type) {
  return DeclaredOption(
      AppOf(verb)->add_option(name, value, doc)->allow_extra_args(false)->type_name(type));
}

// Calls what may throw BadValue, as CLI11 has it said.
template <typename F>
void Parse(const char* name, const F& parse) {
  try {
    parse();
  } catch (const BadValue& bad) {
    throw CLI::ValidationError(name, bad.what());
  }
}

void ParseShard(const std::string& text, SelectionOptions& selection) {
  int index = 0, count = 0, used = 0;
  if (std::sscanf(text.c_str(), "%d/%d%n", &index, &count, &used) != 2 ||
      used != static_cast<int>(text.size()) || count < 1 || index < 1 || index > count) {
    throw BadValue("'" + text + "' is no shard: say i/n with 1 <= i <= n, as 2/4");
  }
  selection.shard_index = index;
  selection.shard_count = count;
}

std::vector<ReportRequest> ParseReports(const std::vector<std::string>& texts,
                                        const std::vector<std::string>& kinds) {
  const std::string known = Join(kinds);
  std::vector<ReportRequest> requests;
  for (const std::string& text : texts) {
    std::size_t begin = 0;
    while (begin <= text.size()) {
      std::size_t end = std::min(text.find(',', begin), text.size());
      std::string item = text.substr(begin, end - begin);
      std::size_t equals = item.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
        throw BadValue("'" + item + "' is no report: say KIND=FILE, as junit=out.xml");
      }
      std::string kind = item.substr(0, equals);
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
        throw BadValue("unknown kind '" + kind + "'" + NearestHint(kind, kinds) + "; there are " +
                       known);
      }
      requests.push_back({kind, item.substr(equals + 1)});
      begin = end + 1;
    }
  }
  return requests;
}

}  // namespace

DeclaredOption& DeclaredOption::Between(int least, int most) {
  OptionOf(option_)->check(CLI::Range(least, most).description(""));
  return *this;
}

DeclaredOption& DeclaredOption::Between(double least, double most) {
  OptionOf(option_)->check(CLI::Range(least, most).description(""));
  return *this;
}

DeclaredOption& DeclaredOption::Positive() {
  OptionOf(option_)->check(CLI::PositiveNumber.description(""));
  return *this;
}

DeclaredOption& DeclaredOption::OneOf(const std::vector<std::string>& words) {
  OptionOf(option_)->check(CLI::IsMember(words).description(""));
  return *this;
}

DeclaredOption& DeclaredOption::Count(int values) {
  OptionOf(option_)->allow_extra_args(true)->expected(values);
  return *this;
}

DeclaredOption& DeclaredOption::Required() {
  OptionOf(option_)->required();
  return *this;
}

DeclaredOption VerbArguments::Option(const char* name, std::string& value, const char* doc,
                                     const char* type) {
  return Add(verb_, name, value, doc, type);
}

DeclaredOption VerbArguments::Option(const char* name, int& value, const char* doc,
                                     const char* type) {
  return Add(verb_, name, value, doc, type);
}

DeclaredOption VerbArguments::Option(const char* name, double& value, const char* doc,
                                     const char* type) {
  return Add(verb_, name, value, doc, type);
}

DeclaredOption VerbArguments::Option(const char* name, std::optional<int>& value, const char* doc,
                                     const char* type) {
  return Add(verb_, name, value, doc, type);
}

DeclaredOption VerbArguments::Option(const char* name, std::optional<double>& value,
                                     const char* doc, const char* type) {
  return Add(verb_, name, value, doc, type);
}

DeclaredOption VerbArguments::Option(const char* name, std::vector<std::string>& value,
                                     const char* doc, const char* type) {
  return AddEach(verb_, name, value, doc, type);
}

DeclaredOption VerbArguments::Option(const char* name, std::vector<int>& value, const char* doc,
                                     const char* type) {
  return AddEach(verb_, name, value, doc, type);
}

DeclaredOption VerbArguments::Positional(const char* name, std::string& value,
                                         const std::string& doc) {
  return DeclaredOption(AppOf(verb_)->add_option(name, value, doc));
}

DeclaredOption VerbArguments::Positional(const char* name, std::vector<std::string>& values,
                                         const std::string& doc) {
  return DeclaredOption(AppOf(verb_)->add_option(name, values, doc));
}

void VerbArguments::Flag(const char* name, bool& value, const char* doc) {
  AppOf(verb_)->add_flag(name, value, doc);
}

void VerbArguments::Flag(const char* name, const std::function<void()>& given, const char* doc) {
  AppOf(verb_)->add_flag_callback(name, given, doc);
}

DeclaredOption VerbArguments::Parsed(const char* name,
                                     const std::function<void(const std::string&)>& parse,
                                     const char* doc, const char* type) {
  return DeclaredOption(
      AppOf(verb_)
          ->add_option_function<std::string>(
              name, [name, parse](const std::string& text) { Parse(name, [&] { parse(text); }); },
              doc)
          ->type_name(type));
}

DeclaredOption VerbArguments::ParsedEach(
    const char* name, const std::function<void(const std::vector<std::string>&)>& parse,
    const char* doc, const char* type) {
  return DeclaredOption(AppOf(verb_)
                            ->add_option_function<std::vector<std::string>>(
                                name,
                                [name, parse](const std::vector<std::string>& texts) {
                                  Parse(name, [&] { parse(texts); });
                                },
                                doc)
                            ->allow_extra_args(false)
                            ->type_name(type));
}

void VerbArguments::Footer(const char* text) { AppOf(verb_)->footer(text); }

void VerbArguments::Common(CommonOptions& common) {
  Option("--target", common.target,
         "Program that trains, or a target of trainwreck.yaml [$TRAINWRECK_TARGET, else the "
         "default of trainwreck.yaml, else trainwreck-trainer beside this one]",
         "PATH|NAME");
  Option("--scenarios-root", common.scenarios_root,
         "Folder that names of scenarios count from [`scenarios`, here or above]", "DIR");
  Flag("--suite", common.uses_suite, "Take the scenarios that come with trainwreck, not your own");
  Choice<UseColor>(
      "--color", common.color,
      {{"auto", UseColor::kAuto}, {"always", UseColor::kAlways}, {"never", UseColor::kNever}},
      "auto, always or never [auto]", "WHEN");
  Flag("-v,--verbose", common.verbose, "Say more");
  common.command_line = command_line_;
}

void VerbArguments::Preflight(CommonOptions& common) {
  Flag(
      "--no-preflight", [&common] { common.preflight = false; },
      "Do not try the program and its signals before the first run");
}

void VerbArguments::Selection(SelectionOptions& selection) {
  Positional("PATH", selection.paths,
             "Files, folders, names (nan/lr-too-high, 'nan/lr-too-high[sgd]', 'nan/*') "
             "[scenarios]");
  Option("-k", selection.keyword, "Only cases whose name matches: 'nan and not adamw'", "EXPR");
  Option("-t,--tag", selection.tag, "Only scenarios whose tags match: 'smoke or gpt'", "EXPR");
}

void VerbArguments::Shard(SelectionOptions& selection) {
  Parsed(
      "--shard", [&selection](const std::string& text) { ParseShard(text, selection); },
      "Only the i-th of n parts of the cases", "i/n");
  Option("--shard-costs", selection.shard_costs,
         "A verdicts.json, or what 'history costs' printed: split by what cases took [estimated]; "
         "the same in every shard",
         "FILE");
}

void VerbArguments::Cores(int& cores) {
  Option("-j,--cores", cores, "Cores to use [all that this process may use]", "N").Between(1, 4096);
}

void VerbArguments::Set(std::vector<std::string>& set) {
  Option("--set", set, "Change the recipe of every run; may be repeated", "KEY=VALUE");
}

void VerbArguments::Seeds(int& seeds) {
  Option("--seeds", seeds, "Seeds per arm [as the scenario says]", "N").Between(1, 10000);
}

void VerbArguments::Isolation(bool& exec) {
  Choice<bool>("--isolate", exec, {{"fork", false}, {"exec", true}},
               "fork (from a warm process) or exec (a fresh process each run) [fork]", "HOW");
}

void VerbArguments::PatientArm(std::string& arm) {
  Option("--arm", arm, "The recipe as it is (control), or with its fault [control]",
         "control|fault")
      .OneOf({"control", "fault"});
}

void VerbArguments::HistoryFile(std::string& file) {
  Option("--history", file,
         "The history's file or postgresql:// address, or none [$TRAINWRECK_HISTORY, else "
         ".trainwreck/history.db]",
         "FILE");
}

void VerbArguments::Reports(std::vector<ReportRequest>& reports, bool of_stored) {
  std::vector<std::string> kinds;
  std::string help = "Write reports:";
  for (const ReportFormat& format : ReportFormats()) {
    kinds.push_back(format.name);
    help += " " + format.name + "=FILE,";
  }
  if (of_stored) {
    kinds.push_back(kTensorBoard);
    help += " tensorboard=DIR,";
  }
  help.back() = ';';
  DeclaredOption option = ParsedEach(
      "--report",
      [&reports, kinds](const std::vector<std::string>& texts) {
        reports = ParseReports(texts, kinds);
      },
      (help + " several with commas").c_str(), "KIND=FILE,...");
  if (of_stored) option.Required();
}

void VerbArguments::Results(std::vector<std::string>& require, std::optional<int>& max_skips,
                            std::vector<ReportRequest>& reports, bool& html) {
  Option("--require", require,
         "This scenario must have run and passed, else exit 6; may be repeated", "NAME");
  Option("--max-skips", max_skips, "More skipped cases than this: exit 6", "N");
  Reports(reports);
  Flag(
      "--no-html", [&html] { html = false; }, "Write no report.html beside verdicts.json");
}

namespace {

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

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Verb& verb : Verbs()) names.push_back(verb.name);
  names.insert(names.end(), {"version", "help"});
  return names;
}

bool IsVerb(const std::string& word) {
  const std::vector<std::string> names = VerbNames();
  return std::find(names.begin(), names.end(), word) != names.end();
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
      return Complain("no verb '" + verb + "'" + NearestHint(verb, VerbNames()), "");
    }
    return PrintHelp(app, verb);
  }
  if (IsVerb(first)) return std::nullopt;
  if (first.rfind('-', 0) == 0) return Complain("say a verb first: '" + first + "' is none", "");
  return Complain("no verb '" + first + "'" + NearestHint(first, VerbNames()), "");
}

// What stands behind `--`; the words lose it.
std::vector<std::string> TakeRest(std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return {};
  std::vector<std::string> rest(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return rest;
}

// CLI11 takes them from the back.
std::vector<std::string> Reversed(std::vector<std::string> words) {
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace

ReadCommand ReadCommandLine(const std::vector<std::string>& given,
                            const std::string& command_line) {
  CLI::App app(kIntroduction, "trainwreck");
  app.footer(kFooter);
  app.require_subcommand(1);
  std::map<std::string, std::function<int()>> calls;
  std::map<std::string, std::vector<std::string>*> rests;
  for (const Verb& verb : Verbs()) {
    VerbArguments arguments(app.add_subcommand(verb.name, verb.summary), command_line);
    calls[verb.name] = verb.declare(arguments);
    rests[verb.name] = arguments.rest();
  }
  app.add_subcommand("version", "Print the version");
  app.add_subcommand("help", "Print this, or the help of a verb");

  ReadCommand command;
  command.status = AnswerDirectly(app, given);
  if (command.status) return command;
  std::vector<std::string> words = given;
  command.verb = words.front();
  if (std::vector<std::string>* rest = rests.at(command.verb)) *rest = TakeRest(words);
  try {
    app.parse(Reversed(words));
  } catch (const CLI::ParseError& error) {
    command.status = error.get_exit_code() == 0 ? PrintHelp(app, command.verb)
                                                : Complain(Explain(app, error), command.verb);
    return command;
  }
  command.call = calls.at(command.verb);
  for (const Verb& verb : Verbs()) {
    if (verb.name == command.verb) command.prints_colors = verb.prints_colors;
  }
  return command;
}

bool ReadOptions(const std::vector<std::string>& words,
                 const std::function<void(VerbArguments&)>& declare) {
  CLI::App app;
  VerbArguments arguments(&app, "");
  declare(arguments);
  try {
    app.parse(Reversed(words));
  } catch (const CLI::ParseError&) {
    return false;
  }
  return true;
}

}  // namespace trainwreck
