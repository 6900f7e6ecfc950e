// The assertion language: one string per check, parsed, checked against a target's signals, and
// read over the traces of runs, with a three-valued truth and margins. docs/reference/formulas.md
// describes it.
//
//   auto parsed = Formula::Parse("eventually[:60] nonfinite(loss)");
//   if (!parsed.errors.empty()) ...
//   std::vector<FormulaError> errors = parsed.formula->Check(vocabulary);
//   Reading reading = parsed.formula->Evaluate({.self = &trace, .arms = {{"control", &control}}});
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck::formula {

enum class Truth { kFalse, kUnknown, kTrue };
const char* ToString(Truth truth);  // "false", "unknown", "true"
std::optional<Truth> FindTruth(std::string_view name);

// The unit of a margin. A formula has a margin in each unit that occurs in it: how far the
// quantities of that unit may move, with all others held fixed, before the formula flips.
enum class Unit { kOctave, kStep, kSecond, kPlain };
inline constexpr int kUnitCount = 4;
const char* ToString(Unit unit);  // as text has it: "octaves", "steps", "s", ""
const char* NameOf(Unit unit);    // as files have it: "octaves", "steps", "s", "plain"
std::optional<Unit> FindUnit(std::string_view name);

// All values that the final margin can take; a point when it is known. Positive: the formula holds.
struct Interval {
  double lo;
  double hi;
};

struct Reading {
  Truth truth = Truth::kUnknown;
  // The margins by Unit; empty: the unit does not occur.
  std::array<std::optional<Interval>, kUnitCount> margins;
  Unit main_unit = Unit::kPlain;  // the unit of the margin to show first
  int step = -1;                  // where it was decided, -1: nowhere in particular
  // The values that decided it: "mean(loss[-20:]) = 3.22, 0.8 * mean(loss[:5]) = 2.1".
  std::string seen;
};

// The reading of a formula at one step.
struct StepReading {
  Truth truth = Truth::kUnknown;
  bool sampled = true;  // false: unknown because a sparse signal has no sample at this step
  std::array<std::optional<Interval>, kUnitCount> margins;
};

// A position is a byte offset into the formula's text.
struct FormulaError {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string message;
  std::string hint;  // the likely fix, may be empty
};

// The names that a formula may mention.
struct Vocabulary {
  const TargetDescription* target = nullptr;
  std::set<std::string> arms;  // "control", "reference", ...: may stand before a dot
  int planned_steps = 0;       // windows and slices must lie inside
  int world_size = 1;
  bool has_rounding = false;        // there are arms for rounding()
  std::set<std::string> fault_ids;  // allowed in fired(...)
  std::set<std::string> checks;     // names of checks, for suggestions
};

// Runs of control whose initial weights differ from control's by rounding alone: rounding_1, ...
inline constexpr char kRoundingArm[] = "rounding_";

// The runs that a formula is read over: its own, and those of other arms with the same seed and
// point.
struct Runs {
  const RunTrace* self = nullptr;
  std::map<std::string, const RunTrace*> arms;  // missing arm: everything about it is unknown
  // The arm that `control` and distance() mean; rounding() is always that of the arm "control".
  std::string control = "control";
  // The runs of the same arm with every seed, this one included, in the order of the seeds; they
  // have no `seeds` themselves. Empty: what is read over seeds is unknown.
  std::vector<Runs> seeds = {};
};

// A part of a formula as a chart can show it: a signal, the steps at which it is read, and the
// number that it is compared with there.
struct Sketch {
  std::string signal;  // "loss", "update_norm{head.*}"
  std::string arm;     // whose signal; empty: the run's own
  int rank = 0;
  std::size_t begin = 0;  // of the comparison or detector, in the formula's text
  std::size_t end = 0;
  int from = 0;  // steps [from, to)
  int to = 0;
  std::string comparison;  // "<", with the signal on the left; empty: with no number that is known
  std::vector<double> threshold;  // one for all steps, or one for each step of the run
};

// A bare name in a formula: an event, or a name that the caller gives a meaning.
struct Mention {
  std::string name;
  std::string arm;
  bool at_steps = false;  // below anything but and, or, not, implies
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Node;  // the syntax tree, private to this package

class Formula {
 public:
  struct ParseResult;
  static ParseResult Parse(std::string_view text);

  // All errors of the formula. With `at_steps`, it is checked for EvaluateAtSteps.
  std::vector<FormulaError> Check(const Vocabulary& vocabulary, bool at_steps = false) const;

  // Parts whose truth is the same in every run: `loss <= loss`, `p or not p`. `own_arm` is read as
  // the run itself: it finds the parts that are constant where that arm is compared with itself.
  std::vector<FormulaError> FindVacuous(const Vocabulary& vocabulary,
                                        const std::string& own_arm = "") const;

  // Total: terminates on any input, in time linear in steps times size of the formula.
  Reading Evaluate(const Runs& runs, const TargetDescription& target) const;
  // Evaluates at each step, as if the formula stood inside a temporal operator.
  std::vector<StepReading> EvaluateAtSteps(const Runs& runs, const TargetDescription& target) const;

  // What it compares, in the order of the text: at most eight parts. Windows inside of another
  // window, of the past or in seconds are not drawn.
  std::vector<Sketch> Sketches(const Runs& runs, const TargetDescription& target) const;

  // The formula with numbers in place of recipe(KEY); `values` must have all keys. Without them,
  // any comparison with recipe(KEY) is unknown.
  Formula WithRecipe(const std::map<std::string, double>& values) const;
  // The formula with the names of roles in place of the program's own names of signals.
  Formula WithRoles(const TargetDescription& target) const;
  std::set<std::string> recipe_keys() const;  // named in recipe()

  const std::string& text() const { return text_; }
  // All signals that it mentions: "loss", "update_norm{head.*}". Signals that are costly to record
  // are recorded only when a formula mentions them.
  std::vector<std::string> signals() const;
  // What Plan::record needs for it: its signals, and its events that the target writes on demand.
  std::vector<std::string> asked(const TargetDescription& target) const;
  std::set<std::string> arms() const;
  std::set<std::string> events() const;   // names of the events it mentions
  std::vector<Mention> mentions() const;  // bare names, in the order of the text
  bool reads_own_run() const;             // not only runs of other arms
  bool reads_rounding() const;            // arms whose names begin with kRoundingArm
  bool reads_seeds() const;               // Runs::seeds
  // Whether it reads `arm` step by step or bit for bit: `control.loss`, distance(loss),
  // `control.last(param_digest[:])`. Only a run of the same seed can then stand for that arm.
  bool needs_same_seed(const std::string& arm, const TargetDescription& target) const;
  bool counts_from_end() const;  // by a slice or index such as [-20:], [-1]
  double furthest_step() const;  // named in a window or slice; 0: none
  // Whether it names an event of how a run ended (exited, stalled, ...). Only such a formula can
  // excuse an abnormal end. The judge finds out whether it does: it reads the formula without that
  // end.
  bool mentions_ending() const;
  // What its outermost `or` joins; without one, itself.
  std::vector<Formula> alternatives() const;

 private:
  explicit Formula(std::string text, std::shared_ptr<const Node> root);
  std::string text_;
  std::shared_ptr<const Node> root_;
};

struct Formula::ParseResult {
  std::optional<Formula> formula;  // empty when there are errors
  std::vector<FormulaError> errors;
};

// "10 steps", "1 octave", "0.2", "3 s" -> amount and unit.
struct Amount {
  double value = 0;
  Unit unit = Unit::kPlain;
};
std::optional<Amount> ParseAmount(std::string_view text);

}  // namespace trainwreck::formula
