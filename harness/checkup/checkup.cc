#include "harness/checkup/checkup.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "harness/report/text.h"
#include "harness/session/preflight.h"

namespace trainwreck {
namespace {

constexpr const char* kSchema = "trainwreck/checkup";
constexpr const char* kScoreSchema = "trainwreck/checkup-score";
constexpr int kSchemaVersion = 3;
constexpr std::size_t kNamed = 3;     // rows
constexpr std::size_t kEvidence = 5;  // clues a row
// The evidence of clues that depend on each other is counted several times, so that odds of one to
// one by these bits are no reason for an alarm. docs/measured/findings.md has the rates.
constexpr double kAlarmBits = 10;

Chosen TriedCases(const CommonOptions& options, const Session& session) {
  Chosen known = KnownCases(session);
  RequirePreflight(options, session, known.cases);
  return known;
}

// The clues that speak most for a row, each formula once, in the variant where it speaks loudest.
std::vector<ClueLine> EvidenceOf(const Practice& practice, const Diagnosis& diagnosis,
                                 const Likeness& likeness, const Findings& findings, int steps) {
  std::vector<ClueLine> lines;
  std::set<std::string> seen;
  for (const ClueEvidence& one :
       diagnosis.EvidenceFor(likeness, findings.readings, practice.clues.size())) {
    const std::string text = practice.clues.TextOf(one.clue, steps);
    if (!seen.insert(text.substr(text.find(": "))).second) continue;
    lines.push_back({text, one.holds, one.in_row, one.overall});
    if (lines.size() == kEvidence) break;
  }
  return lines;
}

// With what its scenario prescribes.
NamedRow RowOf(const Likeness& likeness, const Scenario& scenario) {
  NamedRow row{.row = likeness.row,
               .title = scenario.title,
               .bits = likeness.bits,
               .evidence = {},
               .next = {},
               .not_first = {},
               .see = "trainwreck run '" + likeness.signature + "'"};
  for (const Remedy& remedy : scenario.remedies) {
    row.next.push_back({remedy.name, TextOf(remedy.changes)});
  }
  for (const Decoy& decoy : scenario.decoys) {
    row.not_first.push_back({decoy.name, TextOf(decoy.changes)});
  }
  return row;
}

// Whether all its runs agree in a clue that reads otherwise in every healthy run.
bool StandsOut(const Signature& fault, const std::vector<Signature>& signatures) {
  for (std::size_t clue = 0; clue < fault.counts.size(); ++clue) {
    const Count& here = fault.counts[clue];
    if (here.known() == 0 || (here.holds > 0 && here.fails > 0)) continue;
    int alike = 0, known = 0;
    for (const Signature& healthy : signatures) {
      if (!healthy.row.empty()) continue;
      alike += here.holds > 0 ? healthy.counts[clue].holds : healthy.counts[clue].fails;
      known += healthy.counts[clue].known();
    }
    if (alike == 0 && known > 0) return true;
  }
  return false;
}

std::string NameOf(const Likeness& likeness) {
  return likeness.row.empty() ? "healthy" : likeness.row;
}

}  // namespace

Practice::Practice(const Session& opened, const CommonOptions& options, int cores_to_use)
    : session(opened),
      cores(cores_to_use),
      known(TriedCases(options, session)),
      clues(SymptomsOf(known.cases), session.description),
      signatures(KnownSignatures(known.cases, clues, session, cores)) {}

std::string FamilyOf(const std::string& row) { return row.substr(0, row.find('/')); }

UnseenRows FindUnseenRows(const std::vector<Case>& cases,
                          const std::vector<Signature>& signatures) {
  std::set<std::string> lacking, twins, named_by_invariants, rows, seen;
  for (const Case& one : cases) {
    const std::string& name = one.scenario->name;
    if (!one.skip_reason.empty()) {
      lacking.insert(name);
    } else if (IsNamedByItsInvariant(*one.scenario)) {
      named_by_invariants.insert(name);
    } else if (one.scenario->faults.empty()) {
      twins.insert(name);
    }
  }
  for (const Signature& signature : signatures) {
    if (signature.row.empty()) continue;
    rows.insert(signature.row);
    if (StandsOut(signature, signatures)) seen.insert(signature.row);
  }
  UnseenRows unseen;
  const auto put = [&](const std::set<std::string>& from, std::vector<std::string>& into) {
    std::set_difference(from.begin(), from.end(), rows.begin(), rows.end(),
                        std::back_inserter(into));
  };
  put(lacking, unseen.lacking);
  put(twins, unseen.twins);
  put(named_by_invariants, unseen.named_by_invariants);
  std::set_difference(rows.begin(), rows.end(), seen.begin(), seen.end(),
                      std::back_inserter(unseen.like_healthy));
  return unseen;
}

std::optional<CheckupReport> CheckUp(const Practice& practice, const Patient& patient) {
  Findings findings;
  const bool is_done = Examine({patient}, practice.clues, practice.session, practice.cores,
                               [&](std::size_t, Findings found) { findings = std::move(found); });
  if (!is_done) return std::nullopt;
  CheckupReport report;
  report.recipe = patient.name;
  report.arm = ToString(patient.arm);
  report.seeds = static_cast<int>(patient.runs.size());
  report.final_losses = findings.final_losses;
  report.unseen = FindUnseenRows(practice.known.cases, practice.signatures);
  const Diagnosis diagnosis(practice.signatures, kAlarmBits);
  const Reach reach = ReachOf(patient.runs.front());
  const std::vector<Likeness> ranked = diagnosis.Rank(findings.readings, reach);
  if (ranked.front().row.empty()) report.healthy_like = ranked.front().signature;
  const int steps = patient.runs.front().steps;
  for (const Likeness& likeness : ranked) {
    if (likeness.row.empty() || report.named.size() == kNamed) continue;
    const auto& known = practice.known.scenarios;
    const auto scenario = std::find_if(
        known.begin(), known.end(), [&](const Scenario& one) { return one.name == likeness.row; });
    NamedRow& row = report.named.emplace_back(RowOf(likeness, *scenario));
    row.evidence = EvidenceOf(practice, diagnosis, likeness, findings, steps);
  }
  return report;
}

Json ToJson(const CheckupReport& report) {
  const auto changes = [](const std::vector<NamedChange>& list) {
    Json items = Json::array();
    for (const NamedChange& one : list) {
      items.push_back({{"name", one.name}, {"changes", one.changes}});
    }
    return items;
  };
  Json named = Json::array();
  for (const NamedRow& row : report.named) {
    Json evidence = Json::array();
    for (const ClueLine& line : row.evidence) {
      evidence.push_back({{"clue", line.text},
                          {"holds", line.holds},
                          {"in_row", line.in_row},
                          {"overall", line.overall}});
    }
    named.push_back(
        {{"row", row.row},
         {"family", FamilyOf(row.row)},
         {"title", row.title},
         {"bits", row.bits},
         {"evidence", evidence},
         {"advice",
          {{"next", changes(row.next)}, {"not_first", changes(row.not_first)}, {"see", row.see}}}});
  }
  Json variants = Json::object();
  for (const auto& [name, loss] : report.final_losses) variants[name] = FormatNumber(loss);
  return {{"schema", kSchema},
          {"version", kSchemaVersion},
          {"recipe", report.recipe},
          {"arm", report.arm},
          {"seeds", report.seeds},
          {"healthy", report.is_healthy()},
          {"final_losses", variants},
          {"named", named},
          {"not_seen",
           {{"lacking", report.unseen.lacking},
            {"twins", report.unseen.twins},
            {"named_by_invariants", report.unseen.named_by_invariants},
            {"like_healthy", report.unseen.like_healthy}}}};
}

void Score::Add(const std::string& row, const std::vector<Likeness>& ranked) {
  const std::string& named_first = ranked.front().row;
  ++all;
  healthy += named_first.empty();
  first += named_first == row;
  family += !named_first.empty() && FamilyOf(named_first) == FamilyOf(row);
  std::size_t place = 0;
  for (const Likeness& likeness : ranked) {
    if (likeness.row.empty()) continue;
    if (++place > kNamed) break;
    in_three += likeness.row == row;
  }
}

std::vector<Patient> PatientsToScore(const std::vector<Case>& cases, int seeds) {
  std::vector<Patient> patients;
  for (const Case& one : cases) {
    for (ArmKind arm : {ArmKind::kControl, ArmKind::kFault}) {
      Patient patient = PatientOf(one, arm, kLearningSeeds, seeds);
      if (!patient.runs.empty()) patients.push_back(std::move(patient));
    }
  }
  return patients;
}

std::optional<ScoreReport> ScoreCheckups(const Practice& practice,
                                         const std::vector<Patient>& patients) {
  const Diagnosis diagnosis(practice.signatures, kAlarmBits);
  std::map<std::string, int> cases_of;  // row -> cases with its fault
  for (const Signature& signature : practice.signatures) ++cases_of[signature.row];
  ScoreReport report;
  const bool is_done =
      Examine(patients, practice.clues, practice.session, practice.cores,
              [&](std::size_t index, const Findings& findings) {
                const Patient& patient = patients[index];
                const std::string& row = patient.scenario;
                const bool is_fault = patient.arm == ArmKind::kFault;
                Score& score = is_fault ? report.faults[FamilyOf(row)] : report.controls;
                for (std::size_t i = 0; i < findings.readings.size(); ++i) {
                  const Reach reach = ReachOf(patient.runs[i]);
                  const auto ranked = diagnosis.Rank({findings.readings[i]}, reach, patient.name);
                  score.Add(row, ranked);
                  if (!is_fault) {
                    report.known_controls.Add(row, diagnosis.Rank({findings.readings[i]}, reach));
                  }
                  if (is_fault && cases_of[row] > 1) {
                    report.unseen.Add(row, diagnosis.Rank({findings.readings[i]}, reach,
                                                          patient.name, Diagnosis::LeaveOut::kAll));
                  }
                  const std::string first = NameOf(ranked.front());
                  report.checkups.push_back({patient.name, patient.arm, patient.runs[i].seed, first,
                                             first == (is_fault ? row : "healthy")});
                }
              });
  if (!is_done) return std::nullopt;
  return report;
}

Json ToJson(const ScoreReport& report) {
  Json items = Json::array();
  for (const ScoredCheckup& one : report.checkups) {
    items.push_back({{"case", one.case_name},
                     {"arm", ToString(one.arm)},
                     {"seed", one.seed},
                     {"first", one.first}});
  }
  return {{"schema", kScoreSchema}, {"version", kSchemaVersion}, {"checkups", items}};
}

}  // namespace trainwreck
