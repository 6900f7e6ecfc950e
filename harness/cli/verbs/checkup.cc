// trainwreck checkup: the five-minute checklist on a recipe, and which known fault it looks like.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "harness/checkup/known.h"
#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/report/text.h"
#include "harness/session/preflight.h"
#include "harness/session/storage.h"

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
  bool score = false;  // many checkups of which the answer is known
};

constexpr const char* kSchema = "trainwreck/checkup";
constexpr const char* kScoreSchema = "trainwreck/checkup-score";
constexpr int kSchemaVersion = 1;
constexpr std::size_t kNamed = 3;     // rows
constexpr std::size_t kEvidence = 5;  // clues a row

std::string FamilyOf(const std::string& row) { return row.substr(0, row.find('/')); }

const Scenario* FindScenario(const Chosen& known, const std::string& name) {
  for (const Scenario& scenario : known.scenarios) {
    if (scenario.name == name) return &scenario;
  }
  return nullptr;
}

Chosen TriedCases(const CommonOptions& options, const Session& session) {
  Chosen known = KnownCases(session);
  RequirePreflight(options, session, known.cases);
  return known;
}

// What is known, and how to look at something else.
struct Practice {
  explicit Practice(const CheckupOptions& options)
      : session(OpenSession(options.common, /*builds=*/true)),
        known(TriedCases(options.common, session)),
        clues(SymptomsOf(known.cases), session.description),
        signatures(KnownSignatures(known.cases, clues, session, options.cores)) {}

  Session session;
  Chosen known;
  ClueSet clues;
  std::vector<Signature> signatures;  // empty: interrupted
};

// The cases of the command line, with as many seeds beyond those of learning as are wanted.
Chosen Cases(const Practice& practice, const CheckupOptions& options) {
  PlanOptions plan;
  plan.seeds = kLearningSeeds + options.seeds;
  plan.overrides = ParseOverrides(options.set, practice.session.description);
  SelectionOptions selection;
  selection.paths = options.paths;
  if (options.paths.empty()) selection.tag = "not negative";
  return ChooseCases(practice.session, selection, plan, /*points=*/{});
}

void PrintLosses(const Findings& findings) {
  std::vector<std::vector<std::string>> rows = {{"variant", "final loss"}};
  for (const Variant& variant : VariantsOf({}, {})) {
    for (const auto& [name, loss] : findings.final_losses) {
      if (name == variant.name) rows.push_back({variant.what, FormatNumber(loss)});
    }
  }
  PrintTable(std::cout, rows);
}

// The clues that speak most for a row, each formula once, in the variant where it speaks loudest.
Json EvidenceOf(const Practice& practice, const Diagnosis& diagnosis, const Likeness& likeness,
                const Findings& findings, int steps) {
  Json items = Json::array();
  std::set<std::string> seen;
  for (const ClueEvidence& one :
       diagnosis.EvidenceFor(likeness, findings.readings, practice.clues.size())) {
    const std::string text = practice.clues.TextOf(one.clue, steps);
    if (!seen.insert(text.substr(text.find(": "))).second) continue;
    items.push_back(
        {{"clue", text}, {"holds", one.holds}, {"in_row", one.in_row}, {"overall", one.overall}});
    if (items.size() == kEvidence) break;
  }
  return items;
}

// "next: ...", "not first: ...", "see: ...", of a row's scenario.
Json AdviceOf(const Scenario& scenario, const Likeness& likeness) {
  Json next = Json::array(), not_first = Json::array();
  for (const Remedy& remedy : scenario.remedies) {
    next.push_back({{"name", remedy.name}, {"changes", TextOf(remedy.changes)}});
  }
  for (const Decoy& decoy : scenario.decoys) {
    not_first.push_back({{"name", decoy.name}, {"changes", TextOf(decoy.changes)}});
  }
  return {{"next", next},
          {"not_first", not_first},
          {"see", "trainwreck run '" + likeness.signature + "'"}};
}

void PrintList(const std::string& label, const Json& items) {
  std::string text;
  for (const Json& item : items) {
    text += (text.empty() ? "" : "; ") + item.at("name").get<std::string>() + " (" +
            item.at("changes").get<std::string>() + ")";
  }
  if (!text.empty()) std::cout << "  " << label << text << "\n";
}

void PrintNamed(const Json& named, std::size_t place) {
  std::cout << place << ". " << named.at("row").get<std::string>()
            << fmt::format("  {:+.0f} bits: ", named.at("bits").get<double>())
            << named.at("title").get<std::string>() << "\n";
  for (const Json& one : named.at("evidence")) {
    std::cout << fmt::format(
        "  {}  {}  ({:.0f}% of its runs, {:.0f}% of all)\n",
        one.at("holds").get<bool>() ? "true " : "false", one.at("clue").get<std::string>(),
        100 * one.at("in_row").get<double>(), 100 * one.at("overall").get<double>());
  }
  PrintList("next:      ", named.at("advice").at("next"));
  PrintList("not first: ", named.at("advice").at("not_first"));
  std::cout << "  see:       " << named.at("advice").at("see").get<std::string>() << "\n";
}

int CheckOne(const CheckupOptions& options, const Practice& practice) {
  const CheckupOptions& wanted = options;
  const Chosen chosen = Cases(practice, wanted);
  const Patient patient = OnePatient(chosen, wanted.arm, kLearningSeeds, wanted.seeds);
  const Case& one = *patient.one;
  Findings findings;
  const bool is_done = Examine({patient}, practice.clues, practice.session, wanted.cores,
                               [&](std::size_t, Findings found) { findings = std::move(found); });
  if (!is_done) return kExitInterrupted;
  const Diagnosis diagnosis(practice.signatures);
  const std::vector<Likeness> ranked = diagnosis.Rank(findings.readings);
  const int steps = patient.runs.front().steps;
  std::cout << fmt::format("# checkup of {} ({}): seeds: {}, signatures to compare with: {}\n",
                           one.name, wanted.arm, wanted.seeds, practice.signatures.size());
  PrintLosses(findings);
  const bool is_healthy = ranked.front().row.empty();
  std::cout << "# "
            << (is_healthy ? "nothing found: it is most like the healthy recipe of " +
                                 ranked.front().signature
                           : "family: " + FamilyOf(ranked.front().row))
            << "\n";
  Json named = Json::array();
  for (const Likeness& likeness : ranked) {
    if (likeness.row.empty() || named.size() == kNamed) continue;
    const Scenario& scenario = *FindScenario(practice.known, likeness.row);
    named.push_back({{"row", likeness.row},
                     {"family", FamilyOf(likeness.row)},
                     {"title", scenario.title},
                     {"bits", likeness.bits},
                     {"evidence", EvidenceOf(practice, diagnosis, likeness, findings, steps)},
                     {"advice", AdviceOf(scenario, likeness)}});
    if (likeness.bits > 0) PrintNamed(named.back(), named.size());
  }
  Json variants = Json::object();
  for (const auto& [name, loss] : findings.final_losses) variants[name] = FormatNumber(loss);
  if (!wanted.report.empty()) {
    WriteWholeFile(wanted.report, Json({{"schema", kSchema},
                                        {"version", kSchemaVersion},
                                        {"recipe", one.name},
                                        {"arm", wanted.arm},
                                        {"seeds", wanted.seeds},
                                        {"healthy", is_healthy},
                                        {"final_losses", variants},
                                        {"named", named}})
                                          .dump(1) +
                                      "\n");
    std::cout << "# report: " << wanted.report << "\n";
  }
  return is_healthy ? kExitPassed : kExitFailed;
}

// Of many checkups of which the answer is known.
struct Score {
  int all = 0, first = 0, in_three = 0, family = 0, healthy = 0;
  void Add(const Patient& patient, const std::vector<Likeness>& ranked) {
    const std::string& row = patient.one->scenario->name;
    ++all;
    healthy += ranked.front().row.empty();
    first += ranked.front().row == row;
    family += !ranked.front().row.empty() && FamilyOf(ranked.front().row) == FamilyOf(row);
    std::size_t place = 0;
    for (const Likeness& likeness : ranked) {
      if (likeness.row.empty()) continue;
      if (++place > kNamed) break;
      in_three += likeness.row == row;
    }
  }
};

std::string Percent(int part, int all) {
  return all == 0 ? "-" : fmt::format("{}/{} ({:.0f}%)", part, all, 100.0 * part / all);
}

int ScoreAll(const CheckupOptions& options, const Practice& practice) {
  const CheckupOptions& wanted = options;
  const Chosen chosen = Cases(practice, wanted);
  std::vector<Patient> patients;
  for (const Case& one : chosen.cases) {
    for (ArmKind arm : {ArmKind::kControl, ArmKind::kFault}) {
      Patient patient = PatientOf(one, arm, kLearningSeeds, wanted.seeds);
      if (!patient.runs.empty()) patients.push_back(std::move(patient));
    }
  }
  if (patients.empty()) return kExitNothingRun;
  const Diagnosis diagnosis(practice.signatures);
  std::map<std::string, Score> faults;  // by family
  Score controls, unseen;
  std::map<std::string, int> cases_of;  // row -> cases with its fault
  for (const Signature& signature : practice.signatures) ++cases_of[signature.row];
  Json items = Json::array();
  std::vector<std::vector<std::string>> rows = {{"arm", "seed", "named first", "case"}};
  const bool is_done = Examine(
      patients, practice.clues, practice.session, wanted.cores,
      [&](std::size_t index, const Findings& findings) {
        const Patient& patient = patients[index];
        for (std::size_t i = 0; i < findings.readings.size(); ++i) {
          const auto ranked = diagnosis.Rank({findings.readings[i]}, patient.one->name);
          const bool is_fault = patient.arm == ArmKind::kFault;
          (is_fault ? faults[FamilyOf(patient.one->scenario->name)] : controls)
              .Add(patient, ranked);
          if (is_fault && cases_of[patient.one->scenario->name] > 1) {
            unseen.Add(patient, diagnosis.Rank({findings.readings[i]}, patient.one->name,
                                               Diagnosis::LeaveOut::kAll));
          }
          const std::string first = ranked.front().row.empty() ? "healthy" : ranked.front().row;
          items.push_back({{"case", patient.one->name},
                           {"arm", ToString(patient.arm)},
                           {"seed", patient.runs[i].seed},
                           {"first", first}});
          if (first == (is_fault ? patient.one->scenario->name : "healthy")) continue;
          rows.push_back({ToString(patient.arm), std::to_string(patient.runs[i].seed), first,
                          patient.one->name});
        }
      });
  if (!is_done) return kExitInterrupted;
  std::cout << "# wrong:\n";
  PrintTable(std::cout, rows);
  rows = {{"fault arms of", "row first", "row in first three", "family first", "called healthy"}};
  const auto add = [&](const std::string& name, const Score& score) {
    rows.push_back({name, Percent(score.first, score.all), Percent(score.in_three, score.all),
                    Percent(score.family, score.all), Percent(score.healthy, score.all)});
  };
  for (const auto& [family, score] : faults) add(family, score);
  add("points never seen", unseen);
  PrintTable(std::cout, rows);
  std::cout << "# control arms: wolf cried in "
            << Percent(controls.all - controls.healthy, controls.all)
            << ", the recipe's own control unknown\n";
  if (!wanted.report.empty()) {
    WriteWholeFile(
        wanted.report,
        Json({{"schema", kScoreSchema}, {"version", kSchemaVersion}, {"checkups", items}}).dump(1) +
            "\n");
    std::cout << "# report: " << wanted.report << "\n";
  }
  return kExitPassed;
}

int CheckupVerb(const CheckupOptions& options) {
  if (!options.score && options.paths.empty()) {
    throw UsageError("say which RECIPE, as 'trainwreck checkup nan/lr-too-high --arm fault'");
  }
  if (!options.report.empty()) CheckWritable(options.report, "--report");
  const Practice practice(options);
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
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "checkup", "Go through the five-minute checklist; which known fault does a recipe look like?",
    kSearching + 3, Declare, CheckupVerb);

}  // namespace
}  // namespace trainwreck
