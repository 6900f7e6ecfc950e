#include "harness/formula/formula.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "harness/formula/check.h"
#include "harness/formula/detectors.h"
#include "harness/formula/evaluator.h"
#include "harness/formula/explain.h"
#include "harness/formula/node.h"
#include "harness/formula/parser.h"
#include "harness/formula/sketch.h"
#include "harness/formula/vacuous.h"

namespace trainwreck::formula {
namespace {

Unit MainUnit(const Node& root, const TargetDescription& target) {
  std::optional<Unit> of_atom;
  bool in_seconds = false, has_steps = false;
  ForEach(root, [&](const Node& node) {
    if (!of_atom) of_atom = AtomUnit(node, target);
    in_seconds |= node.window.given && node.window.in_seconds;
    has_steps |= IsTemporal(node.kind) || node.kind == Kind::kEvent;
  });
  if (of_atom) return *of_atom;
  if (in_seconds) return Unit::kSecond;
  return has_steps ? Unit::kStep : Unit::kPlain;
}

void AddMentions(const Node& node, bool at_steps, std::vector<Mention>& mentions) {
  if (node.kind == Kind::kEvent && !node.has_call) {
    mentions.push_back({node.name, node.arm, at_steps, node.begin, node.end});
  }
  const bool is_logic = node.kind == Kind::kNot || node.kind == Kind::kAnd ||
                        node.kind == Kind::kOr || node.kind == Kind::kImplies;
  for (const auto& child : node.children) AddMentions(*child, at_steps || !is_logic, mentions);
}

template <typename T>
struct Named {
  T value;
  const char* name;
};

constexpr Named<Truth> kTruths[] = {
    {Truth::kFalse, "false"}, {Truth::kUnknown, "unknown"}, {Truth::kTrue, "true"}};
constexpr Named<Unit> kUnits[] = {{Unit::kOctave, "octaves"},
                                  {Unit::kStep, "steps"},
                                  {Unit::kSecond, "s"},
                                  {Unit::kPlain, "plain"}};
static_assert(std::size(kUnits) == kUnitCount);

template <typename T, std::size_t N>
const char* NameIn(const Named<T> (&table)[N], T value) {
  for (const Named<T>& row : table) {
    if (row.value == value) return row.name;
  }
  return "";
}

template <typename T, std::size_t N>
std::optional<T> FindIn(const Named<T> (&table)[N], std::string_view name) {
  for (const Named<T>& row : table) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

Truth TruthOf(Tri truth) {
  return truth == kYes ? Truth::kTrue : truth == kNo ? Truth::kFalse : Truth::kUnknown;
}

}  // namespace

const char* ToString(Truth truth) { return NameIn(kTruths, truth); }

std::optional<Truth> FindTruth(std::string_view name) { return FindIn(kTruths, name); }

const char* NameOf(Unit unit) { return NameIn(kUnits, unit); }

const char* ToString(Unit unit) { return unit == Unit::kPlain ? "" : NameOf(unit); }

std::optional<Unit> FindUnit(std::string_view name) { return FindIn(kUnits, name); }

Formula::Formula(std::string text, std::shared_ptr<const Node> root)
    : text_(std::move(text)), root_(std::move(root)) {}

Formula::ParseResult Formula::Parse(std::string_view text) {
  ParsedTree tree = ParseTree(text);
  ParseResult result;
  result.errors = std::move(tree.errors);
  if (tree.root != nullptr) {
    result.formula = Formula(std::string(text), std::shared_ptr<const Node>(std::move(tree.root)));
  }
  return result;
}

std::vector<FormulaError> Formula::Check(const Vocabulary& vocabulary, bool at_steps) const {
  return CheckTree(*root_, vocabulary, at_steps);
}

std::vector<FormulaError> Formula::FindVacuous(const Vocabulary& vocabulary,
                                               const std::string& own_arm) const {
  return FindVacuousParts(*root_, vocabulary, own_arm);
}

Reading Formula::Evaluate(const Runs& runs, const TargetDescription& target) const {
  Reading reading;
  reading.main_unit = MainUnit(*root_, target);
  if (runs.self == nullptr) return reading;
  const Evaluator evaluator(runs, target);
  const Value value = evaluator.OverRun(*root_, {});
  reading.truth = TruthOf(value.truth);
  for (int unit = 0; unit < kUnitCount; ++unit) {
    if (value.has[unit]) reading.margins[unit] = value.margins[unit];
  }
  Explanation explanation = Explain(evaluator, *root_, value.truth);
  reading.step = explanation.step;
  reading.seen = std::move(explanation.seen);
  return reading;
}

std::vector<StepReading> Formula::EvaluateAtSteps(const Runs& runs,
                                                  const TargetDescription& target) const {
  std::vector<StepReading> readings;
  if (runs.self == nullptr) return readings;
  const Track track = Evaluator(runs, target).AtSteps(*root_, {});
  for (int step = 0; step < track.size(); ++step) {
    const Value value = track.At(step);
    StepReading reading;
    reading.truth = TruthOf(value.truth);
    reading.sampled = !value.open;
    for (int unit = 0; unit < kUnitCount; ++unit) {
      if (value.has[unit]) reading.margins[unit] = value.margins[unit];
    }
    readings.push_back(reading);
  }
  return readings;
}

namespace {

bool Has(const Node& root, Kind kind) {
  bool has = false;
  ForEach(root, [&](const Node& node) { has |= node.kind == kind; });
  return has;
}

// `parsed`: the same, as its text has it.
void FillIn(const std::map<std::string, double>& values, const Node& node, Node& parsed) {
  parsed.name = node.name;
  if (node.kind == Kind::kRecipe) {
    parsed.kind = Kind::kNumber;
    parsed.number = values.at(node.name);
  }
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    FillIn(values, node.child(i), *parsed.children[i]);
  }
}

void NameByRoles(const TargetDescription& target, Node& node) {
  const SignalInfo* signal = node.kind == Kind::kSignal ? target.FindSignal(node.name) : nullptr;
  if (signal != nullptr) node.name = signal->name;
  for (const auto& child : node.children) NameByRoles(target, *child);
}

}  // namespace

std::vector<Sketch> Formula::Sketches(const Runs& runs, const TargetDescription& target) const {
  return SketchesOf(Evaluator(runs, target), *root_);
}

Formula Formula::WithRecipe(const std::map<std::string, double>& values) const {
  ParsedTree tree = ParseTree(text_);
  FillIn(values, *root_, *tree.root);
  return Formula(text_, std::move(tree.root));
}

Formula Formula::WithRoles(const TargetDescription& target) const {
  ParsedTree tree = ParseTree(text_);
  NameByRoles(target, *tree.root);
  return Formula(text_, std::move(tree.root));
}

std::set<std::string> Formula::recipe_keys() const {
  std::set<std::string> keys;
  ForEach(*root_, [&](const Node& node) {
    if (node.kind == Kind::kRecipe) keys.insert(node.name);
  });
  return keys;
}

std::vector<std::string> Formula::asked(const TargetDescription& target) const {
  std::vector<std::string> names = signals();
  for (std::size_t i = 0, count = names.size(); i < count; ++i) {
    const std::string name = names[i].substr(0, names[i].find('{'));
    const SignalInfo* info = target.FindSignal(name);
    if (info != nullptr && OwnName(*info) != name) {
      names.push_back(OwnName(*info) + names[i].substr(name.size()));
    }
  }
  for (const std::string& event : events()) {
    const EventInfo* info = target.FindEvent(event);
    if (info != nullptr && info->on_demand) names.push_back(event);
  }
  return names;
}

std::vector<std::string> Formula::signals() const {
  std::set<std::string> signals;
  ForEach(*root_, [&](const Node& node) {
    if (node.kind != Kind::kSignal) return;
    signals.insert(node.glob ? node.name + "{" + *node.glob + "}" : node.name);
  });
  return {signals.begin(), signals.end()};
}

std::set<std::string> Formula::arms() const {
  std::set<std::string> arms;
  ForEach(*root_, [&](const Node& node) {
    if (!node.arm.empty()) arms.insert(node.arm);
    if (node.kind == Kind::kDistance || node.kind == Kind::kRounding ||
        node.kind == Kind::kSeedSpread) {
      arms.insert("control");
    }
  });
  return arms;
}

std::set<std::string> Formula::events() const {
  std::set<std::string> events;
  ForEach(*root_, [&](const Node& node) {
    if (node.kind == Kind::kEvent) events.insert(node.name);
  });
  return events;
}

std::vector<Mention> Formula::mentions() const {
  std::vector<Mention> mentions;
  AddMentions(*root_, false, mentions);
  return mentions;
}

bool Formula::reads_own_run() const {
  bool reads = false;
  ForEach(*root_, [&](const Node& node) {
    reads |= (node.kind == Kind::kSignal || node.kind == Kind::kEvent) && node.arm.empty();
  });
  return reads;
}

bool Formula::reads_rounding() const { return Has(*root_, Kind::kRounding); }

bool Formula::reads_seeds() const { return Has(*root_, Kind::kSeedSpread); }

bool Formula::needs_same_seed(const std::string& arm, const TargetDescription& target) const {
  bool needs = false;
  ForEach(*root_, [&](const Node& node) {
    needs |= node.kind == Kind::kDistance && arm == "control";
    if (node.kind != Kind::kSignal || node.arm != arm) return;
    const SignalInfo* signal = target.FindSignal(node.name);
    needs |= !node.slice.given || (signal != nullptr && signal->exact);
  });
  return needs;
}

bool Formula::counts_from_end() const {
  bool counts = false;
  ForEach(*root_, [&](const Node& node) {
    counts |= node.slice.from.value_or(0) < 0 || node.slice.to.value_or(0) < 0;
  });
  return counts;
}

double Formula::furthest_step() const {
  double furthest = 0;
  ForEach(*root_, [&](const Node& node) {
    furthest = std::max<double>(
        {furthest, 1.0 * node.slice.from.value_or(0), 1.0 * node.slice.to.value_or(0)});
    if (node.window.in_seconds) return;
    furthest = std::max({furthest, node.window.from.value_or(0), node.window.to.value_or(0)});
  });
  return furthest;
}

bool Formula::mentions_ending() const {
  static const std::set<std::string> endings = {
      "exited",      "stalled", "restarted", "ended",      "killed", "collective_mismatch",
      "ended_early", "timeout", "put_down",  "rank_failed"};
  const std::set<std::string> mentioned = events();
  return std::any_of(mentioned.begin(), mentioned.end(),
                     [](const std::string& event) { return endings.contains(event); });
}

std::vector<Formula> Formula::alternatives() const {
  if (root_->kind != Kind::kOr) return {*this};
  std::vector<Formula> all;
  for (const auto& child : root_->children) {
    const Formula one(text_, std::shared_ptr<const Node>(root_, child.get()));
    for (Formula& part : one.alternatives()) all.push_back(std::move(part));
  }
  return all;
}

std::optional<Amount> ParseAmount(std::string_view text) {
  auto trim = [](std::string_view part) {
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ' ' || part.back() == '\t')) part.remove_suffix(1);
    return part;
  };
  text = trim(text);
  Amount amount;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), amount.value);
  if (parsed.ec != std::errc() || !std::isfinite(amount.value)) return std::nullopt;
  const std::string_view unit = trim(text.substr(parsed.ptr - text.data()));
  if (unit.empty()) {
    amount.unit = Unit::kPlain;
  } else if (unit == "octave" || unit == "octaves") {
    amount.unit = Unit::kOctave;
  } else if (unit == "step" || unit == "steps") {
    amount.unit = Unit::kStep;
  } else if (unit == "s" || unit == "second" || unit == "seconds") {
    amount.unit = Unit::kSecond;
  } else {
    return std::nullopt;
  }
  return amount;
}

}  // namespace trainwreck::formula
