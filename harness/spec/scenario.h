// A scenario: what its YAML file says, checked. docs/guide/scenario.md describes every key.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/outcome/outcome.h"
#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"
#include "harness/spec/invariants.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {

// Changes of a recipe, in the order of the file: `set` first, then `scale`.
struct Changes {
  std::vector<std::pair<std::string, Json>> set;
  std::vector<std::pair<std::string, double>> scale;
};

struct InjectedFault {
  std::string id;
  std::string fault;
  std::map<std::string, Json> with;  // complete: defaults filled in
  Trigger trigger;
  Position position;
  std::string file;  // where `position` is: the scenario's own or one that it extends
};

// A formula with its conditions: an entry of healthy or symptoms, or the quality gate.
struct Check {
  std::string name;
  formula::Formula formula;
  std::optional<formula::Amount> min_margin;
  std::string margin_reason;      // why so small a margin is enough
  std::vector<std::string> when;  // globs of point names; empty: all points
  Position position;
  std::string file;
};

struct Remedy {
  std::string name;
  Changes changes;
  std::vector<std::string> resolves;  // names of symptoms; empty in the file: all of them
  std::vector<std::string> waives;    // "quality" or names of healthy checks
  std::vector<std::string> when;
  bool is_correct = true;  // `kind: correct` takes the cause away, `mitigate` limits the damage
  bool is_undo = false;    // `kind: undo`: it only takes the fault out; shown, never run
  std::string note;
  Position position;
  std::string file;
};

struct Decoy {
  std::string name;
  Changes changes;
  std::vector<std::string> keeps;  // names of symptoms that must still hold; empty in the file: all
  std::vector<std::string> when;
  std::string note;
  Position position;
  std::string file;
};

struct Phase {
  std::string name;
  std::optional<int> until;  // optimizer steps at its end; empty: the recipe's end
  bool is_shared = false;    // of the first: all arms have control's, with its recipe and no fault
};

// A change that must not matter: an arm that has to agree with control.
struct Twin {
  std::string name;
  Changes changes;                     // may be empty: the same run once more
  std::optional<InjectedFault> fault;  // its change, if no recipe key makes it; id: its name
  std::vector<std::string> waives;     // invariants that it breaks on purpose
  std::vector<std::string> when;
  std::vector<Phase> phases;  // empty: the scenario's
  std::string note;
  Position position;
  std::string file;
};

// A fault that `agree` must notice when control and a twin both have it. Its id is its name.
struct Bug {
  InjectedFault fault;
  std::vector<std::string> twins;  // that must show it; empty in the file: all of them
  std::vector<std::string> when;
  std::string note;
  bool only_in_twins = false;  // control is compared as it is
};

// A remedy, decoy or twin that the target cannot have: it changes a key by its role (`role.NAME`),
// and no key of the target has that role.
struct LeftOut {
  ArmKind kind = ArmKind::kRemedy;
  std::string name;
  std::string role;
};

// The strength of the fault, which `$strength` stands for in the file: see strength.h.
struct Strength {
  double own = 0;                    // what the file says
  double from = 0, to = 0;           // the weakest and the strongest that a calibration may choose
  double value = 0;                  // what was used
  std::optional<double> calibrated;  // what was measured with this target
  std::string remark;                // of the calibration

  bool Allows(double wanted) const;
  std::string Text() const;  // "16, calibrated; the scenario itself says 1000"
};

// One named point of the matrix; a scenario without a matrix has one point with an empty name.
struct Point {
  std::string name;
  std::map<std::string, std::string> coordinates;           // axis -> its point
  Changes changes;                                          // of the recipe, before the fault
  std::map<std::string, std::map<std::string, Json>> with;  // fault id -> parameters
};

struct Expectation {
  VerdictKind verdict = VerdictKind::kPass;
  FailureClass failure_class;  // none: any
  std::string reason;
};

struct Requirements {
  int ranks = 1;
  std::vector<std::string> devices;   // "cpu", "cuda"
  std::vector<std::string> features;  // of the target
  std::int64_t memory_bytes = 0;
};

struct Budget {
  double seconds = 120;       // wall clock, per run, with all its phases and restarts
  double stall_seconds = 20;  // without any progress of any rank
  bool has_seconds = false;   // the scenario itself gives `seconds`
  bool has_stall_seconds = false;
};

struct Scenario {
  std::string file;                   // as named on the command line
  std::vector<std::string> extended;  // files whose content it takes over, defaults among them
  std::string name;
  std::string title;
  std::vector<std::string> sources;
  std::vector<std::string> tags;
  std::optional<Strength> strength;
  Changes recipe;
  int seed_count = 5;
  int seed_require = 5;
  bool repeats_seed = false;  // all runs of an arm have the same seed
  std::vector<InjectedFault> faults;
  std::vector<Check> healthy;
  std::vector<Check> symptoms;
  std::vector<std::string> breaks;  // invariants that the faults break: these are symptoms too
  std::vector<Remedy> remedies;
  std::vector<Decoy> decoys;
  std::string no_remedy;  // why there is no remedy, or only an undo; may be empty
  std::optional<Check> quality;
  std::vector<Twin> twins;
  std::vector<Check> agree;   // what each twin and control must agree in
  std::vector<Bug> bugs;      // `must_notice`
  std::vector<Point> points;  // at least one
  std::vector<Phase> phases;  // at least one: {"train"}
  std::vector<LeftOut> left_out;
  bool has_reference = false;
  Expectation expect;
  Requirements requires_;
  Budget budget;
  std::shared_ptr<const std::vector<Invariant>> invariants;  // null: there are none
  // Not empty: the first thing that it needs and this target lacks, "fault:model.bit_flip", or what
  // has a value that it does not fit, "value:steps". Then it can only be skipped, and the rest of
  // it was not checked.
  std::string unserved;
  std::string misfit;  // why it does not fit a value, for people
};

// Of Scenario::unserved.
inline constexpr std::string_view kValuePrefix = "value:";

struct ScenarioFile {
  std::optional<Scenario> scenario;  // empty when there are errors
  std::vector<Diagnostic> errors;    // all of the file
};

struct LoadOptions {
  std::string scenarios_root =
      "scenarios";  // a scenario's name is its path under this; `extends` stays inside
  bool check_name = true;
  // The scenario was written for this target: a name that the target lacks is an error, not a
  // reason to skip, unless `elsewhere` has it ("fault:model.bit_flip", "signal:loss", "phases").
  bool is_own = false;
  std::set<std::string> elsewhere;  // names of other targets of the same file; "*": all
  std::shared_ptr<const std::vector<Invariant>> invariants;  // that every sound run must keep
};

// The fault that makes initial weights differ by rounding. A target that has it, by itself or by a
// file of `kind: Fault`, can measure what rounding does. Its parameter `draw` is 1, 2, ...
inline constexpr char kRoundingFault[] = "model.round_weights";
inline constexpr int kRoundingDraws = 5;
// Whether some check at this point needs the rounding arms.
bool ReadsRounding(const Scenario& scenario, const Point& point);

// The name of the file with the common part of a folder's scenarios; it is no scenario itself.
inline constexpr char kDefaultsFile[] = "defaults.yaml";
bool IsDefaultsFile(const std::string& path);

// Whether another target of the same file has `what`: then this scenario may be for that one.
bool IsElsewhere(const std::string& what, const LoadOptions& options);

// Reads and checks one file against a target. Touches no device and starts nothing.
ScenarioFile LoadScenario(const std::string& path, const TargetDescription& target,
                          const LoadOptions& options = {});

// The same over a text, for tests and fuzzing.
ScenarioFile ParseScenario(const std::string& text, const std::string& file,
                           const TargetDescription& target, const LoadOptions& options = {});

// JSON Schema (draft 7) of scenario files for this target, for editors.
Json ScenarioSchema(const TargetDescription& target);

// The recipe of a point before any fault: defaults < scenario's recipe < point < `overrides`.
Recipe ResolveRecipe(const TargetDescription& target, const Scenario& scenario, const Point& point,
                     const Changes& overrides);
void Apply(const Changes& changes, Recipe& recipe);

// The change that a fault of the recipe made to one key.
struct AmendedKey {
  std::string key;
  Json before;
  Json after;
};

// Performs a fault of the recipe (FaultInfo::amends not empty) with complete parameters.
std::vector<AmendedKey> Amend(const FaultInfo& fault, const std::map<std::string, Json>& with,
                              Recipe& recipe);

// Calls `visit` with each check of a scenario that has a formula, quality included.
template <typename AnyScenario, typename Visit>
void ForEachCheck(AnyScenario& scenario, Visit visit) {
  for (auto* checks : {&scenario.healthy, &scenario.symptoms, &scenario.agree}) {
    for (auto& check : *checks) visit(check);
  }
  if (scenario.quality) visit(*scenario.quality);
}

// One line, with its place, for each
// `min_margin` that is too small to mean anything and has no `reason`.
std::vector<std::string> RemarksOn(const Scenario& scenario);

bool AppliesTo(const std::vector<std::string>& when, const Point& point);

}  // namespace trainwreck
