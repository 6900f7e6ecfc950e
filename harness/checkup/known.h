// The faults that a checkup knows: the signatures of each scenario's runs, with its fault and
// without. They are learnt once for a target and kept in the user's cache.
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

// The subject of a checkup: the control or fault arm of a case, with some of its seeds.
struct Patient {
  std::string name;      // of the case
  std::string scenario;  // of the case
  std::string digest;    // of what the case claims
  ArmKind arm = ArmKind::kControl;
  std::vector<Run> runs;  // as given, by seed
};

struct Findings {
  std::vector<ClueReadings> readings;  // by run of the patient
  // Variant -> the last loss of its first run, NaN where there is none.
  std::vector<std::pair<std::string, double>> final_losses;
};

// The patient of a case. No runs: it is skipped, has no such arm, or its fault is named by an
// invariant.
Patient PatientOf(const Case& one, ArmKind arm, int first_seed, int seeds);

// The patient of the only chosen case; throws UsageError when there are several, or it has none.
Patient OnePatient(const Chosen& chosen, const std::string& arm, int first_seed, int seeds);

// Makes runs in a folder that is gone afterwards. False when it was interrupted; throws
// ConfigurationError when runs could not be made.
bool RunAside(const std::vector<Batch>& batches, const Session& session, int cores,
              const std::function<void(std::size_t, BatchResults&)>& finished);

// Runs all variants of all patients. False when it was interrupted; throws ConfigurationError when
// runs could not be made.
bool Examine(const std::vector<Patient>& patients, const ClueSet& clues, const Session& session,
             int cores, const std::function<void(std::size_t, Findings)>& examined);

// Whether its only symptoms are broken invariants: these name the fault themselves, in every run,
// and nothing else about its training need be wrong.
bool IsNamedByItsInvariant(const Scenario& scenario);

// All scenarios that are not tagged `negative`, under the scenarios root.
Chosen KnownCases(const Session& session);

// Where the signatures of this target and these clues are kept: a line each.
std::string SignaturesFile(const ClueSet& clues, const Session& session);

// The signatures, from the cache or learnt now. Empty when interrupted: what was learnt is kept.
std::vector<Signature> KnownSignatures(const std::vector<Case>& cases, const ClueSet& clues,
                                       const Session& session, int cores);

}  // namespace trainwreck
