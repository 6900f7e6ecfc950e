#include "harness/checkup/known.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "harness/launch/private_file.h"
#include "harness/protocol/digest.h"
#include "harness/protocol/parse_json.h"
#include "harness/protocol/trace.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

constexpr const char* kSignatureSchema = "trainwreck/signature";
constexpr int kSignatureVersion = 3;

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

// Names what was learnt from: the case, what it claims, and the arm.
std::string KeyOf(const Patient& patient) {
  return patient.name + " " + patient.digest + " " + ToString(patient.arm);
}

// What was learnt before, by KeyOf. A line a signature, written when its runs are over: learning
// that was cut off goes on where it ended. A damaged line is learnt again.
std::map<std::string, Signature> ReadLearnt(const std::string& file, std::size_t clues) {
  std::map<std::string, Signature> learnt;
  std::istringstream lines(ReadOwnFile(file));
  for (std::string line; std::getline(lines, line);) {
    try {
      const Json json = ParseJson(line);
      if (json.at("schema") != kSignatureSchema || json.at("version") != kSignatureVersion)
        continue;
      Signature signature = SignatureFromJson(json.at("signature"));
      if (signature.counts.size() != clues) continue;
      learnt[json.at("of").get<std::string>()] = std::move(signature);
    } catch (const std::exception&) {
      continue;
    }
  }
  return learnt;
}

std::vector<Count> CountsOf(const Findings& findings, std::size_t clues) {
  std::vector<Count> counts(clues);
  for (const ClueReadings& run : findings.readings) {
    for (std::size_t clue = 0; clue < run.size(); ++clue) {
      counts[clue].holds += run[clue] == formula::Truth::kTrue;
      counts[clue].fails += run[clue] == formula::Truth::kFalse;
    }
  }
  return counts;
}

// Adds their signatures to `learnt` and to the file, each when its runs are over. False when it was
// interrupted.
bool Learn(const std::vector<Patient>& patients, const ClueSet& clues, const Session& session,
           int cores, const std::string& file, std::map<std::string, Signature>& learnt) {
  const Trainings trainings = TrainingsOf(patients);
  std::size_t runs = 0;
  for (const Patient& patient : trainings.made) {
    for (const Run& run : patient.runs) runs += clues.RunsFor(run).size();
  }
  std::cerr << "# learning what " << patients.size()
            << " faults and healthy recipes look like: " << runs
            << " runs, once for this target and these scenarios\n";
  TraceWriter writer(file);
  return Examine(trainings.made, clues, session, cores,
                 [&](std::size_t index, const Findings& findings) {
                   for (std::size_t i = 0; i < patients.size(); ++i) {
                     if (trainings.of[i] != index) continue;
                     const Patient& patient = patients[i];
                     const bool is_fault = patient.arm == ArmKind::kFault;
                     const Signature signature{patient.name, is_fault ? patient.scenario : "",
                                               ReachOf(patient.runs.front()),
                                               CountsOf(findings, clues.size())};
                     writer.Write({{"schema", kSignatureSchema},
                                   {"version", kSignatureVersion},
                                   {"of", KeyOf(patient)},
                                   {"signature", ToJson(signature)}});
                     learnt[KeyOf(patient)] = signature;
                   }
                 });
}

}  // namespace

bool IsNamedByItsInvariant(const Scenario& scenario) {
  return scenario.symptoms.empty() && !scenario.breaks.empty();
}

Patient PatientOf(const Case& one, ArmKind kind, int first_seed, int seeds) {
  Patient patient{one.name, one.scenario->name, one.digest, kind, {}};
  if (!one.skip_reason.empty()) return patient;
  if (kind == ArmKind::kFault && IsNamedByItsInvariant(*one.scenario)) return patient;
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

std::string SignaturesFile(const ClueSet& clues, const Session& session) {
  return CacheFolder() + "/signatures-" +
         DigestText(DigestOfTarget(session.target) + clues.digest()) + ".jsonl";
}

std::vector<Signature> KnownSignatures(const std::vector<Case>& cases, const ClueSet& clues,
                                       const Session& session, int cores) {
  const std::vector<Patient> patients = PatientsToLearnFrom(cases);
  if (patients.empty()) {
    throw ConfigurationError(
        "nothing to compare with: no scenario that this target can run under " +
        session.scenarios_root);
  }
  const std::string file = SignaturesFile(clues, session);
  std::map<std::string, Signature> learnt = ReadLearnt(file, clues.size());
  std::vector<Patient> missing;
  std::copy_if(patients.begin(), patients.end(), std::back_inserter(missing),
               [&](const Patient& patient) { return !learnt.contains(KeyOf(patient)); });
  if (!missing.empty() && !Learn(missing, clues, session, cores, file, learnt)) return {};
  std::vector<Signature> signatures;
  for (const Patient& patient : patients) signatures.push_back(learnt.at(KeyOf(patient)));
  return signatures;
}

}  // namespace trainwreck
