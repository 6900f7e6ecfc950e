// From traces to verdicts: every claim of a scenario, checked where it must hold and where it must
// not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/launch/launcher.h"
#include "harness/outcome/outcome.h"
#include "harness/plan/run.h"

namespace trainwreck {

// One check of one arm, over its seeds.
struct CheckResult {
  std::string check;  // name of the symptom, healthy check or "quality", "fired"
  std::string formula;
  std::string arm;
  bool expected = true;                    // the truth value that the scenario claims here
  std::string file;                        // of the check: the scenario's or one that it extends
  Position position;                       // in that file
  std::vector<formula::Reading> readings;  // by seed
  int agree = 0, disagree = 0, unknown = 0;
  // The worst margin over the seeds; positive agrees with `expected`.
  std::optional<double> worst_margin;
  formula::Unit unit = formula::Unit::kPlain;
  FailureClass failure_class;  // none: as claimed
  std::string message;         // what was expected, in how many seeds it was seen; for people
  std::string seen;            // "seed 4: loss = 3.2 (step 60)"; may be empty
  std::string rerun_command;   // empty when as claimed
  std::string evidence;        // the folder of the run to look at, if it left one
  std::string place;           // where two runs that must be equal come apart first; may be empty
  std::vector<std::string> suspects;  // parts of the training stack to look at, the likeliest first
  int worst_seed = -1;                // the one to look at first; -1: none
};

// An arm as reports show it, with the loss of one typical run.
struct ArmSummary {
  std::string arm;
  ArmKind kind = ArmKind::kControl;
  bool is_undo = false;  // a remedy that only undoes the fault; it was not run
  std::string note;      // of the remedy or decoy
  ArmStatus status = ArmStatus::kOk;
  std::string ended;         // how its first run that ended badly did, with its last words
  int median_seed = -1;      // the run with the median final loss; -1: there is none
  double final_loss = 0;     // of that run, its last sample; NaN when there is none
  std::vector<int> steps;    // at most 200, evenly spread, the first and the last among them
  std::vector<double> loss;  // at these steps; non-finite values stay as they are
};

// A strange fact about a run, whatever the claims: a loss of exactly 0, for example.
struct Note {
  std::string arm;
  ArmKind kind = ArmKind::kControl;
  int seed = 0;      // the first that shows it
  int seeds = 1;     // that show it; 0: it is not about runs
  int step = -1;     // in that seed, the first; -1: of the run as a whole
  std::string text;  // "loss is exactly 0"
};

// The results of an invariant in the runs of a case in which it was checked.
struct InvariantCount {
  std::string name;
  int held = 0;
  int broken = 0;
  int open = 0;     // not decided: the run ended before, or lacks a sample
  int excused = 0;  // remedies that break it, as the fault's own run does
};

struct Verdict {
  std::string case_name;
  std::string scenario;
  std::string point;
  std::string file;  // of the scenario
  std::string title;
  std::string scenario_digest;  // of what it claims, see DigestOfClaims
  // Where it was judged: "device", and what the target's ranks said ("cpu_capability", "blas",
  // ...).
  std::map<std::string, std::string> environment;
  std::vector<std::string> tags;
  // The devices of its runs: "cpu", "cuda"; empty: the harness did not choose.
  std::vector<std::string> devices;
  VerdictKind verdict = VerdictKind::kPass;
  FailureClass failure_class;   // none for pass
  std::string reason;           // one sentence
  bool expected_limit = false;  // passed because `expect` names this outcome
  // The verdict before `expect` is applied; gates count this one.
  VerdictKind seen_verdict = VerdictKind::kPass;
  std::vector<int> tolerated_seeds;  // with a broken claim, as many as `seeds` allows
  std::vector<std::string> remarks;  // sentences that are no failures
  std::vector<CheckResult> checks;
  std::vector<ArmSummary> arms;            // in the plan's order
  std::vector<Note> notes;                 // in the order of arms; they change no verdict
  std::vector<InvariantCount> invariants;  // in the order of their file
  // Arm -> its runs by seed, without their traces: a suite may have 10^5 runs.
  std::map<std::string, std::vector<RunResult>> runs;
  std::vector<std::string> undo_remedies;
  // The smallest margin of the checks that hold as claimed; after a failure, of the checks that
  // gave it its class.
  std::optional<double> worst_margin;
  formula::Unit worst_margin_unit = formula::Unit::kPlain;
  double wall_seconds = 0;
  double cpu_seconds = 0;
  std::string picture;  // curves of its runs for report.html, see harness/picture; may be empty
};

// The runs of a case so far; missing runs make checks unknown.
struct CaseResults {
  const Case* plan = nullptr;
  std::map<std::string, std::map<int, RunResult>> runs;  // arm -> seed -> result
};

Verdict Judge(const CaseResults& results, const TargetDescription& target);

// The verdict of a case whose run and its repetition differ: a failure of its own, unless the
// scenario expects it. An error stays an error.
void FailAsNondeterministic(const Scenario& scenario, const std::string& difference,
                            Verdict& verdict);

// Whether all checks of this unfinished run are decided already, min_margin included.
bool IsDecided(const Case& plan, const Run& run, const RunTrace& trace,
               const std::map<std::string, const RunTrace*>& finished_arms,
               const TargetDescription& target);

// The first difference between two runs that should be equal bit for bit, "loss at step 12 of rank
// 0: 3.1 and 3.2"; empty when there is none. Signals of time and memory (`time`, `*_s`, `memory_*`)
// are left out.
std::string CompareTraces(const RunTrace& a, const RunTrace& b);

// The exit status of an invocation from all its verdicts: 0, 1, 5 or 7 of docs/guide/cli.md (4 when
// nothing was executed).
int ExitCode(const std::vector<Verdict>& verdicts);

}  // namespace trainwreck
