// Which symptoms tell which faults apart: every symptom of a suite is read over the runs of every
// case, of its own scenario and of all others.
//
//   std::vector<SuiteSymptom> symptoms = SymptomsOf(cases);
//   Matrix matrix{symptoms, {}, {}};
//   for (const Case& one : cases) matrix.columns.push_back(ReadColumn(one, traces, symptoms, ...));
//   FalsePositives alarms = FalsePositivesOf(matrix);
//
// A symptom is read where it fits: a formula about a step that the run does not have, about a
// module that its model does not have, or about an arm that was not run is unknown, never false.
// min_margin does not count: a symptom that barely holds in a healthy run is an alarm all the same.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/plan/run.h"
#include "harness/protocol/description.h"
#include "harness/protocol/json.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck {

inline constexpr const char* kMatrixSchema = "trainwreck/matrix";
inline constexpr int kMatrixVersion = 1;

// The number of runs in which a formula is true, false, unknown.
struct Count {
  int holds = 0;
  int fails = 0;
  int unknown = 0;
  int known() const { return holds + fails; }
  int runs() const { return known() + unknown; }
};

struct SuiteSymptom {
  std::string scenario;
  std::string file;
  Check check;
  std::string name() const { return scenario + ":" + check.name; }
};

// The symptoms of the cases' scenarios, each once. Symptoms of a skipped scenario are left out.
std::vector<SuiteSymptom> SymptomsOf(const std::vector<Case>& cases);

// What Plan::record needs for the symptoms.
std::vector<std::string> AskedBy(const std::vector<SuiteSymptom>& symptoms,
                                 const TargetDescription& target);

// Arm -> seed -> its run.
using ArmTraces = std::map<std::string, std::map<int, const RunTrace*>>;

// All symptoms over one case.
struct MatrixColumn {
  std::string name;  // of the case
  std::string scenario;
  double require_share = 1;      // share of the seeds that must agree
  std::vector<bool> is_own;      // by symptom: whether this case claims it
  std::vector<Count> fault;      // by symptom
  std::vector<Count> control;    // by symptom
  int control_runs = 0;          // control runs read
  int alarmed_control_runs = 0;  // with a symptom that holds
};

// Reads all symptoms over a case. In a control run, `control.` means the control run of the next
// seed: so a symptom that compares with control can be a false alarm too. With one seed it is
// unknown, and so is a symptom that only a run of the same seed can answer
// (Formula::needs_same_seed). `reference.` has the same seed.
MatrixColumn ReadColumn(const Case& one, const ArmTraces& traces,
                        const std::vector<SuiteSymptom>& symptoms, const TargetDescription& target);

struct Matrix {
  std::vector<SuiteSymptom> symptoms;
  std::vector<MatrixColumn> columns;
  std::map<std::string, std::string> skipped;  // case -> why
};

struct FalsePositives {
  struct Cell {
    int symptom = 0;
    int column = 0;
    Count count;
  };
  std::vector<Cell> cells;  // with control runs in which a symptom holds
  int readings = 0;         // true ones
  int known_readings = 0;   // of all symptoms over all control runs
  int alarmed_runs = 0;
  int control_runs = 0;
  // The Clopper-Pearson bound, one-sided 95%, for the share of control runs that show a symptom. It
  // counts runs, not readings, because the readings of one run depend on each other.
  double upper_bound = 1;
};
FalsePositives FalsePositivesOf(const Matrix& matrix);

// The largest rate at which `hits` or fewer of `trials` come with a probability of at least
// 1 - confidence; 1 without trials.
double UpperBound(int hits, int trials, double confidence);

// Two faults and whether a symptom separates them: it holds in the runs of one and not in those of
// the other, in as many seeds as their scenarios require.
struct FaultPair {
  int a = 0, b = 0;              // columns
  bool only_unreadable = false;  // a symptom holds in one, but in the other it is unknown
};
// Pairs of different scenarios that no symptom separates.
std::vector<FaultPair> PairsNotSeparated(const Matrix& matrix);

Json ToJson(const Matrix& matrix);
// The text for a terminal: a line for each case, then false positives and pairs.
std::string ToText(const Matrix& matrix);

}  // namespace trainwreck
