// From traces to verdicts: every claim of a scenario, checked where it must hold and where it must
// not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/launch/launcher.h"
#include "harness/plan/run.h"

namespace trainwreck {

// One check of one arm, over its seeds.
struct CheckResult {
  std::string check;  // name of the symptom, healthy check or "quality", "fired"
  std::string formula;
  std::string arm;
  bool expected = true;                    // the truth value that the scenario claims here
  Position position;                       // of the check in the file
  std::vector<formula::Reading> readings;  // by seed
  int agree = 0, disagree = 0, unknown = 0;
  std::optional<double>
      worst_margin;  // over the seeds, signed so that positive agrees with `expected`
  formula::Unit unit = formula::Unit::kPlain;
  std::string failure_class;  // empty: as claimed
  std::string message;        // expected, seen, margin; for people
  std::string rerun_command;  // empty when as claimed
};

struct Verdict {
  std::string case_name;
  std::string scenario;
  std::string point;
  std::string verdict;          // pass, fail, inconclusive, error, skip
  std::string failure_class;    // "" for pass; "requires:WHAT" for skip
  std::string reason;           // one sentence
  bool expected_limit = false;  // passed because `expect` names this outcome
  std::vector<CheckResult> checks;
  std::map<std::string, std::vector<RunResult>> runs;  // arm -> by seed
  std::vector<std::string> undo_remedies;
  double wall_seconds = 0;
  double cpu_seconds = 0;
};

// What has been seen of a case so far; missing runs make checks unknown.
struct CaseResults {
  const Case* plan = nullptr;
  std::map<std::string, std::map<int, RunResult>> runs;  // arm -> seed -> result
};

Verdict Judge(const CaseResults& results, const TargetDescription& target);

// Whether everything that will be asked about this unfinished run is known already, min_margin
// included.
bool IsDecided(const Case& plan, const Run& run, const RunTrace& trace,
               const std::map<std::string, const RunTrace*>& finished_arms,
               const TargetDescription& target);

// 0, 1, 5 or 7 of docs/cli.md, from all verdicts of an invocation (4 when nothing was executed).
int ExitCode(const std::vector<Verdict>& verdicts);

}  // namespace trainwreck
