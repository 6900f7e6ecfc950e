// The faults that a checkup knows: what the runs of each scenario look like with its fault and
// without, learnt once for a target and kept in the user's cache.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/checkup/clues.h"
#include "harness/matrix/diagnosis.h"
#include "harness/session/chosen.h"
#include "harness/session/session.h"
#include "harness/session/workspace.h"

namespace trainwreck {

// Seeds that signatures are learnt from; checkups and their figures use others.
inline constexpr int kLearningSeeds = 2;

// What a checkup is run on: control or fault arm of a case, some of its seeds.
struct Patient {
  std::string name;      // of the case
  std::string scenario;  // of the case
  std::string digest;    // of what the case claims
  ArmKind arm = ArmKind::kControl;
  std::vector<Run> runs;  // as given, by seed
};

struct Findings {
  std::vector<ClueReadings> readings;  // by run of the patient
  // Variant -> its last loss, NaN where there is none, of the first run.
  std::vector<std::pair<std::string, double>> final_losses;
};

// Of the cases that checkups are for: one rank, one phase, not skipped. Empty: this case has none.
Patient PatientOf(const Case& one, ArmKind arm, int first_seed, int seeds);

// Of the only case that was chosen; throws UsageError when it is not the only one, or is not fit.
Patient OnePatient(const Chosen& chosen, const std::string& arm, int first_seed, int seeds);

// Runs all variants of all patients. False when it was interrupted; throws ConfigurationError when
// runs could not be made.
bool Examine(const std::vector<Patient>& patients, const ClueSet& clues, const Session& session,
             int cores, const std::function<void(std::size_t, Findings)>& examined);

// All scenarios that are not tagged `negative`, under the scenarios root.
Chosen KnownCases(const Session& session);

// From the cache, or learnt now. Empty when interrupted.
std::vector<Signature> KnownSignatures(const std::vector<Case>& cases, const ClueSet& clues,
                                       const Session& session, int cores);

}  // namespace trainwreck
