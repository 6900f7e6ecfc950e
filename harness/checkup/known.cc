#include "harness/checkup/known.h"

#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "harness/launch/private_file.h"
#include "harness/protocol/digest.h"
#include "harness/protocol/parse_json.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

constexpr const char* kSignaturesSchema = "trainwreck/signatures";
constexpr int kSignaturesVersion = 2;

double LastLoss(const RunTrace& trace) {
  const Series* loss = trace.Find("loss", 0);
  if (loss == nullptr || loss->values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return loss->values.back();
}

std::vector<Patient> PatientsToLearnFrom(const std::vector<Case>& cases) {
  std::vector<Patient> patients;
  for (const Case& one : cases) {
    for (ArmKind arm : {ArmKind::kControl, ArmKind::kFault}) {
      Patient patient = PatientOf(one, arm, 0, kLearningSeeds);
      if (!patient.runs.empty()) patients.push_back(std::move(patient));
    }
  }
  return patients;
}

// Healthy runs of one recipe are the same training in every scenario: it is made once.
struct Trainings {
  std::vector<Patient> made;
  std::vector<std::size_t> of;  // patient -> index in `made`
};

Trainings TrainingsOf(const std::vector<Patient>& patients) {
  Trainings trainings;
  // By recipe, the ends of its phases and the number of seeds.
  std::map<std::tuple<Recipe, std::vector<int>, std::size_t>, std::size_t> healthy;
  for (const Patient& patient : patients) {
    std::size_t index = trainings.made.size();
    if (patient.arm == ArmKind::kControl) {
      const Run& run = patient.runs.front();
      std::vector<int> ends;
      for (const Phase& phase : run.phases) ends.push_back(phase.until.value_or(run.steps));
      index = healthy.emplace(std::tuple(run.plan.recipe, ends, patient.runs.size()), index)
                  .first->second;
    }
    trainings.of.push_back(index);
    if (index == trainings.made.size()) trainings.made.push_back(patient);
  }
  return trainings;
}

std::vector<Signature> Read(const std::string& file, std::size_t clues) {
  std::vector<Signature> signatures;
  try {
    const Json json = ParseJson(ReadOwnFile(file));
    if (json.at("schema") != kSignaturesSchema || json.at("version") != kSignaturesVersion)
      return {};
    for (const Json& item : json.at("signatures")) {
      signatures.push_back(SignatureFromJson(item));
      if (signatures.back().counts.size() != clues) return {};
    }
  } catch (const std::exception&) {  // not there, or damaged: learnt again
    return {};
  }
  return signatures;
}

}  // namespace

Patient PatientOf(const Case& one, ArmKind kind, int first_seed, int seeds) {
  Patient patient{one.name, one.scenario->name, one.digest, kind, {}};
  if (!one.skip_reason.empty()) return patient;
  for (const ArmPlan& arm : one.arms) {
    if (arm.kind != kind) continue;
    for (const Run& run : arm.runs) {
      if (run.seed < first_seed || run.seed >= first_seed + seeds) continue;
      patient.runs.push_back(run);
    }
  }
  return patient;
}

Patient OnePatient(const Chosen& chosen, const std::string& arm, int first_seed, int seeds) {
  if (chosen.cases.size() != 1) {
    throw UsageError(std::to_string(chosen.cases.size()) +
                     " cases are selected; name one recipe, as nan/x or 'nan/x[sgd]'");
  }
  const Case& one = chosen.cases.front();
  Patient patient =
      PatientOf(one, arm == "fault" ? ArmKind::kFault : ArmKind::kControl, first_seed, seeds);
  if (!patient.runs.empty()) return patient;
  throw UsageError(one.name + (one.skip_reason.empty()
                                   ? ": it has no such arm"
                                   : ": this machine lacks what it " + one.skip_reason));
}

bool RunAside(const std::vector<Batch>& batches, const Session& session, int cores,
              const std::function<void(std::size_t, BatchResults&)>& finished) {
  const Workspace workspace;
  LauncherOptions launcher;
  launcher.target = session.target;
  launcher.cores = cores;
  launcher.output_dir = workspace.path();
  const BatchesEnd end = RunBatches(batches, launcher, /*keep=*/false, finished);
  if (!end.troubles.empty()) throw ConfigurationError("cannot run: " + end.troubles.front());
  return !end.interrupted;
}

bool Examine(const std::vector<Patient>& patients, const ClueSet& clues, const Session& session,
             int cores, const std::function<void(std::size_t, Findings)>& examined) {
  std::vector<Batch> batches;
  for (const Patient& patient : patients) {
    Batch& batch = batches.emplace_back();
    for (const Run& run : patient.runs) {
      for (Run& variant : clues.RunsFor(run)) batch.push_back(std::move(variant));
    }
  }
  return RunAside(batches, session, cores, [&](std::size_t index, BatchResults& results) {
    Findings findings;
    for (const Run& run : patients[index].runs) {
      findings.readings.push_back(clues.Read(run, results));
    }
    const int seed = patients[index].runs.front().seed;
    for (const auto& [variant, by_seed] : results) {
      findings.final_losses.emplace_back(variant, LastLoss(by_seed.at(seed).trace));
    }
    examined(index, std::move(findings));
  });
}

Chosen KnownCases(const Session& session) {
  SelectionOptions selection;
  selection.tag = "not negative";
  PlanOptions plan;
  plan.seeds = kLearningSeeds;
  return ChooseCases(session, selection, plan, /*points=*/{});
}

std::vector<Signature> KnownSignatures(const std::vector<Case>& cases, const ClueSet& clues,
                                       const Session& session, int cores) {
  const std::vector<Patient> patients = PatientsToLearnFrom(cases);
  if (patients.empty()) {
    throw ConfigurationError(
        "nothing to compare with: no scenario that this target can run under " +
        session.scenarios_root);
  }
  std::string key = DigestOfTarget(session.target) + clues.digest();
  for (const Patient& patient : patients) key += patient.name + patient.digest;
  const std::string file = CacheFolder() + "/signatures-" + DigestText(key) + ".json";
  std::vector<Signature> signatures = Read(file, clues.size());
  if (signatures.size() == patients.size() && !signatures.empty()) return signatures;
  const Trainings trainings = TrainingsOf(patients);
  std::size_t runs = 0;
  for (const Patient& patient : trainings.made) {
    for (const Run& run : patient.runs) runs += clues.RunsFor(run).size();
  }
  std::cerr << "# learning what " << patients.size()
            << " faults and healthy recipes look like: " << runs
            << " runs, once for this target and these scenarios\n";
  std::vector<std::vector<Count>> counts(trainings.made.size(), std::vector<Count>(clues.size()));
  const bool is_done = Examine(trainings.made, clues, session, cores,
                               [&](std::size_t index, const Findings& findings) {
                                 for (const ClueReadings& run : findings.readings) {
                                   for (std::size_t clue = 0; clue < run.size(); ++clue) {
                                     Count& count = counts[index][clue];
                                     count.holds += run[clue] == formula::Truth::kTrue;
                                     count.fails += run[clue] == formula::Truth::kFalse;
                                   }
                                 }
                               });
  if (!is_done) return {};
  signatures.clear();
  for (std::size_t i = 0; i < patients.size(); ++i) {
    const bool is_fault = patients[i].arm == ArmKind::kFault;
    signatures.push_back({patients[i].name, is_fault ? patients[i].scenario : "",
                          ReachOf(patients[i].runs.front()), counts[trainings.of[i]]});
  }
  Json items = Json::array();
  for (const Signature& signature : signatures) items.push_back(ToJson(signature));
  WriteWholeFile(
      file,
      Json({{"schema", kSignaturesSchema}, {"version", kSignaturesVersion}, {"signatures", items}})
              .dump() +
          "\n");
  return signatures;
}

}  // namespace trainwreck
