// A checkup: a recipe is run in all variants, and its readings are compared with those of all known
// faults. CheckUp looks at one recipe, ScoreCheckups at many whose answer is known.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/checkup/clues.h"
#include "harness/checkup/known.h"
#include "harness/matrix/diagnosis.h"
#include "harness/protocol/json.h"
#include "harness/session/chosen.h"
#include "harness/session/session.h"

namespace trainwreck {

// The known faults, and how to run other recipes.
struct Practice {
  // Learns from the scenarios under the session's root, after their preflight. Throws
  // ConfigurationError.
  Practice(const Session& opened, const CommonOptions& options, int cores_to_use);
  Practice(const Practice&) = delete;
  Practice& operator=(const Practice&) = delete;

  const Session session;
  const int cores;
  const Chosen known;
  const ClueSet clues;
  const std::vector<Signature> signatures;  // empty: interrupted
};

// "nan" of "nan/lr-too-high"
std::string FamilyOf(const std::string& row);

// A clue that speaks for a row.
struct ClueLine {
  std::string text;
  bool holds = false;
  double in_row = 0, overall = 0;  // see ClueEvidence
};

struct NamedChange {
  std::string name;
  std::string changes;  // "optimizer.lr x 0.1"
};

// A known fault that the recipe looks like.
struct NamedRow {
  std::string row, title;
  double bits = 0;
  std::vector<ClueLine> evidence;
  std::vector<NamedChange> next, not_first;  // remedies and decoys of its scenario
  std::string see;                           // the command that shows it
};

// Scenarios that no checkup with this target can name, each once.
struct UnseenRows {
  std::vector<std::string> lacking;              // the target or the machine lacks what they need
  std::vector<std::string> twins;                // they have no fault
  std::vector<std::string> named_by_invariants;  // and have no symptom that a clue could be
  // Each clue that their runs agree in reads so in some healthy run, too.
  std::vector<std::string> like_healthy;
};

UnseenRows FindUnseenRows(const std::vector<Case>& cases, const std::vector<Signature>& signatures);

struct CheckupReport {
  std::string recipe, arm;
  int seeds = 0;
  UnseenRows unseen;
  std::string healthy_like;  // the case with the most similar healthy runs; empty: a fault is found
  std::vector<std::pair<std::string, double>> final_losses;  // by variant
  std::vector<NamedRow> named;                               // the likeliest first, at most three

  bool is_healthy() const { return !healthy_like.empty(); }
};

// Nothing when interrupted. Throws ConfigurationError when runs could not be made.
std::optional<CheckupReport> CheckUp(const Practice& practice, const Patient& patient);

Json ToJson(const CheckupReport& report);

// The result of many checkups whose answer is known.
struct Score {
  int all = 0, first = 0, in_three = 0, family = 0, healthy = 0;
  void Add(const std::string& row, const std::vector<Likeness>& ranked);
};

struct ScoredCheckup {
  std::string case_name;
  ArmKind arm = ArmKind::kControl;
  int seed = 0;
  std::string first;  // the row that is named first, or "healthy"
  bool is_right = false;
};

struct ScoreReport {
  std::map<std::string, Score> faults;  // by family
  Score controls;                       // the recipe's own control unknown
  Score known_controls;                 // known, with other seeds
  Score unseen;                         // fault arms of points that were never seen
  std::vector<ScoredCheckup> checkups;
};

// Control and fault arms of all cases, with the seeds that signatures are not learnt from.
std::vector<Patient> PatientsToScore(const std::vector<Case>& cases, int seeds);

// One seed at a time. Nothing when interrupted.
std::optional<ScoreReport> ScoreCheckups(const Practice& practice,
                                         const std::vector<Patient>& patients);

Json ToJson(const ScoreReport& report);

}  // namespace trainwreck
