// From scenarios to runs: arms x seeds x points, each with its resolved recipe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/outcome/outcome.h"
#include "harness/protocol/plan.h"
#include "harness/spec/arms.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

// The limits of a run's supervisor, from the recipe keys supervisor.* and the scenario's budget.
struct Policy {
  int max_restarts = 0;
  double backoff_seconds = 0;  // before the first restart; doubled for each that counts
  double window_seconds = 0;   // only restarts within the last so many seconds count; 0: all do
  double seconds = 120;
  double stall_seconds = 20;
  // Whether the scenario or its recipe gives the value. Otherwise the target's limits apply.
  bool has_seconds = true;
  bool has_stall_seconds = true;
};

// One real training: one arm x seed x point, with all its phases.
struct Run {
  std::string id;  // "nan/lr-too-high/sgd/fault/3": also its folder under the output folder
  std::string scenario;
  std::string point;
  std::string arm;
  ArmKind kind = ArmKind::kControl;
  int seed = 0;
  Plan plan;  // of the first phase; folders and attempt are filled in by the launcher
  std::vector<Phase> phases;
  Recipe later_changes;  // changes of the plan's recipe in the phases after the first
  // Of a first phase that all arms share: control's recipe, without faults. The plan's is that of
  // the later phases. Null: it is not shared.
  std::shared_ptr<const Recipe> first_recipe;
  bool copies_first_phase = false;           // a shared one, from a run that has made it
  std::vector<AppliedAmendment> amendments;  // written to launcher.jsonl as `fired` events
  std::string device;    // "cuda": as in the plan's recipe; empty: the target leaves no choice
  int ranks = 1;         // the most that there are at once
  int first_ranks = 0;   // of the first start; 0: `ranks`
  int resume_ranks = 0;  // of the later ones; 0: as of the first
  int processes = 0;     // started by the launcher; 0: one per rank
  std::string
      launcher;  // torchrun, mpirun or srun, which starts the ranks; empty: the harness does
  int steps = 0;
  std::map<std::string, std::string> environment;  // of its processes, besides the target's
  Policy policy;
  // Copied into its folder of checkpoints before it starts; with plan.resume it goes on from them.
  std::vector<std::string> checkpoint_files;
  double cost = 0;              // relative: of its steps
  double may_wait_seconds = 0;  // without a core: ranks of which one is lost, for example
};

// An invariant with the numbers of an arm's recipe.
struct StandingCheck {
  Check check;        // named as the invariant
  std::string title;  // what holds
  std::string part;   // the part of a training stack to look at where it fails
};

struct ArmPlan {
  std::string name;
  ArmKind kind = ArmKind::kControl;
  std::shared_ptr<const Remedy> remedy;  // of remedy arms; a part of the case's scenario
  std::shared_ptr<const Decoy> decoy;    // of decoy arms, so too
  std::shared_ptr<const Twin> twin;      // of twin arms, and of bug arms that are not their control
  std::string control = "control";       // the arm to compare it with
  // For a bug arm with a twin: the check that the twin and its control do not agree.
  std::shared_ptr<const Check> notices;
  std::vector<InjectedFault> faults;  // active in its runs
  // Invariants that are read in its runs. Faulty arms read them to know which ones the faults alone
  // break.
  std::vector<StandingCheck> invariants;
  bool is_undo = false;   // only removes the fault, by its plan or as declared: reported, not run
  std::vector<Run> runs;  // by seed
};

// A scenario at one point of its matrix; it gets one verdict. It shares the scenario with the cases
// of the other points, and owns everything that it needs.
struct Case {
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const Point> point;  // a part of the scenario
  std::string name;                    // "nan/lr-too-high[sgd]", or the scenario's name
  std::string digest;                  // of its claims, see DigestOfClaims
  int seed_count = 0;
  int seed_require = 0;
  std::vector<ArmPlan> arms;         // control first
  std::vector<std::string> devices;  // of its runs, each once: "cpu", "cuda"
  int first_seed = 0;                // the seed of its first runs; in verdicts seeds count from 0
  bool is_one_seed = false;          // it is one of several cases, one for each seed
  bool is_control_only = false;      // only control and the arms that its checks name are run
  std::string skip_reason;           // not empty: "requires:device:cuda"
};

struct PlanOptions {
  int seeds = 0;                                 // 0: as the scenario says
  Changes overrides;                             // --set
  std::optional<std::pair<int, int>> each_seed;  // [first, end): every seed is a case of its own
  bool control_only = false;                     // see Case
  std::vector<std::string> available_features;   // beyond the target's: "device:cuda", ...
};

// Sets what follows from the run's resolved recipe and its phases: ranks, launcher, steps, the
// supervisor's limits and the cost. Seconds of the policy stay as they are, but for a stall limit
// in the recipe.
void TakeFromRecipe(Run& run, const TargetDescription& target);

// Names the run as one of arm `name`, in a folder below that of the arm it was made for.
void SetArm(Run& run, const std::string& name);

// The run's phases; none: one, to the end. The plan begins with the first, which is not shared.
void SetPhases(Run& run, std::vector<Phase> phases);

// The plan of the run's first start: of a shared first phase, that of control.
Plan FirstPlan(const Run& run);

// A digest of a scenario's content at a point and of the overrides: recipe, faults, checks,
// remedies, phases. It leaves out title, comments, number of seeds, budgets and the target's
// defaults. Verdicts with the same digest answer the same question.
std::string DigestOfClaims(const Scenario& scenario, const Point& point, const Changes& overrides);

// The cases keep copies of the scenarios.
std::vector<Case> PlanCases(const std::vector<Scenario>& scenarios, const TargetDescription& target,
                            const PlanOptions& options);

}  // namespace trainwreck
