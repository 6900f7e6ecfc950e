// trainwreck checkup: the five-minute checklist on a recipe, and which known fault it looks like.
#include "harness/checkup/checkup.h"

#include <fmt/format.h>

#include <iostream>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/page_file.h"
#include "harness/report/text.h"
#include "harness/session/preflight.h"
#include "harness/session/storage.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct CheckupOptions {
  CommonOptions common;
  std::vector<std::string> paths;  // one recipe; with `score` any, none: all
  std::string arm = "control";     // or "fault"
  int seeds = 1;
  int cores = 0;
  std::vector<std::string> set;
  std::string report;  // a JSON file; empty: none
  std::string html;
  bool score = false;  // many checkups of which the answer is known
};

// The cases of the command line, with as many seeds beyond those of learning as are wanted.
Chosen Cases(const Session& session, const CheckupOptions& options) {
  PlanOptions plan;
  plan.seeds = kLearningSeeds + options.seeds;
  plan.overrides = ParseOverrides(options.set, session.description);
  SelectionOptions selection;
  selection.paths = options.paths;
  if (options.paths.empty()) selection.tag = "not negative";
  return ChooseCases(session, selection, plan, /*points=*/{});
}

void PrintLosses(const CheckupReport& report) {
  std::vector<std::vector<std::string>> rows = {{"variant", "final loss"}};
  for (const Variant& variant : VariantsOf({}, {})) {
    for (const auto& [name, loss] : report.final_losses) {
      if (name == variant.name) rows.push_back({variant.what, FormatNumber(loss)});
    }
  }
  PrintTable(std::cout, rows);
}

void PrintList(const std::string& label, const std::vector<NamedChange>& items) {
  std::string text;
  for (const NamedChange& item : items) {
    text += (text.empty() ? "" : "; ") + item.name + " (" + item.changes + ")";
  }
  if (!text.empty()) std::cout << "  " << label << text << "\n";
}

void PrintNamed(const NamedRow& row, std::size_t place) {
  std::cout << place << ". " << row.row << fmt::format("  {:+.0f} bits: ", row.bits) << row.title
            << "\n";
  for (const ClueLine& line : row.evidence) {
    std::cout << fmt::format("  {}  {}  ({:.0f}% of its runs, {:.0f}% of all)\n",
                             line.holds ? "true " : "false", line.text, 100 * line.in_row,
                             100 * line.overall);
  }
  PrintList("next:      ", row.next);
  PrintList("not first: ", row.not_first);
  std::cout << "  see:       " << row.see << "\n";
}

void PrintUnseen(const UnseenRows& unseen) {
  std::string text;
  for (const auto& [names, what] : {std::pair(&unseen.lacking, " need what this target lacks"),
                                    {&unseen.twins, " are twins, without a fault"},
                                    {&unseen.named_by_invariants, " are named by an invariant"}}) {
    if (names->empty()) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(names->size()) + what;
  }
  if (!text.empty()) std::cout << "# rows that it cannot name: " << text << "\n";
  if (unseen.like_healthy.empty()) return;
  std::cout << "# rows that look healthy to this target's signals: " << Join(unseen.like_healthy)
            << "\n";
}

void WriteReport(const std::string& path, const Json& json) {
  if (path.empty()) return;
  WriteWholeFile(path, json.dump(1) + "\n");
  std::cout << "# report: " << path << "\n";
}

int CheckOne(const CheckupOptions& options, const Practice& practice) {
  const Chosen chosen = Cases(practice.session, options);
  const auto report =
      CheckUp(practice, OnePatient(chosen, options.arm, kLearningSeeds, options.seeds));
  if (!report) return kExitInterrupted;
  std::cout << fmt::format("# checkup of {} ({}): seeds: {}, signatures to compare with: {}\n",
                           report->recipe, report->arm, report->seeds, practice.signatures.size());
  PrintLosses(*report);
  std::cout << "# "
            << (report->is_healthy()
                    ? "nothing found: it is most like the healthy recipe of " + report->healthy_like
                    : "family: " + FamilyOf(report->named.front().row))
            << "\n";
  for (std::size_t i = 0; i < report->named.size(); ++i) {
    if (report->named[i].bits > 0) PrintNamed(report->named[i], i + 1);
  }
  PrintUnseen(report->unseen);
  WriteReport(options.report, ToJson(*report));
  WritePage(options.html, ToJson(*report));
  return report->is_healthy() ? kExitPassed : kExitFailed;
}

std::string Percent(int part, int all) {
  return all == 0 ? "-" : fmt::format("{}/{} ({:.0f}%)", part, all, 100.0 * part / all);
}

int ScoreAll(const CheckupOptions& options, const Practice& practice) {
  const Chosen chosen = Cases(practice.session, options);
  const std::vector<Patient> patients = PatientsToScore(chosen.cases, options.seeds);
  if (patients.empty()) return kExitNothingRun;
  const auto report = ScoreCheckups(practice, patients);
  if (!report) return kExitInterrupted;
  std::vector<std::vector<std::string>> rows = {{"arm", "seed", "named first", "case"}};
  for (const ScoredCheckup& one : report->checkups) {
    if (one.is_right) continue;
    rows.push_back({ToString(one.arm), std::to_string(one.seed), one.first, one.case_name});
  }
  std::cout << "# wrong:\n";
  PrintTable(std::cout, rows);
  rows = {{"fault arms of", "row first", "row in first three", "family first", "called healthy"}};
  const auto add = [&](const std::string& name, const Score& score) {
    rows.push_back({name, Percent(score.first, score.all), Percent(score.in_three, score.all),
                    Percent(score.family, score.all), Percent(score.healthy, score.all)});
  };
  for (const auto& [family, score] : report->faults) add(family, score);
  add("points never seen", report->unseen);
  PrintTable(std::cout, rows);
  const Score& controls = report->controls;
  std::cout << "# control arms: false alarms in "
            << Percent(controls.all - controls.healthy, controls.all)
            << ", the recipe's own control unknown; in "
            << Percent(report->known_controls.all - report->known_controls.healthy,
                       report->known_controls.all)
            << " with it, on other seeds\n";
  WriteReport(options.report, ToJson(*report));
  return kExitPassed;
}

int CheckupVerb(const CheckupOptions& options) {
  if (!options.score && options.paths.empty()) {
    throw UsageError("say which RECIPE, as 'trainwreck checkup nan/lr-too-high --arm fault'");
  }
  if (options.score && !options.html.empty()) throw UsageError("--score has no page: no --html");
  if (!options.report.empty()) CheckWritable(options.report, "--report");
  CheckPage(options.html);
  const Practice practice(OpenSession(options.common, /*builds=*/true), options.common,
                          options.cores);
  if (practice.signatures.empty()) return kExitInterrupted;
  return options.score ? ScoreAll(options, practice) : CheckOne(options, practice);
}

void Declare(VerbArguments& arguments, CheckupOptions& options) {
  arguments.Positional("RECIPE", options.paths,
                       "A scenario's file or name, as nan/x or 'nan/x[sgd]'; with --score any");
  arguments.PatientArm(options.arm);
  arguments.Option("--seeds", options.seeds, "Seeds to look at [1]", "N").Between(1, 1000);
  arguments.Set(options.set);
  arguments.Cores(options.cores);
  arguments.Flag(
      "--score", options.score,
      "Check up on all faults and controls, one seed at a time, and count right answers");
  arguments.Option("--report", options.report, "Write a report as JSON", "FILE");
  DeclarePage(arguments, options.html);
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "checkup", "Go through the five-minute checklist; which known fault does a recipe look like?",
    kSearching + 3, Declare, CheckupVerb);

}  // namespace
}  // namespace trainwreck
