#include "harness/formula/sketch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

namespace trainwreck::formula {
namespace {

constexpr std::size_t kMostSketches = 8;

struct Place {
  std::pair<int, int> steps;  // half open
  bool is_at_steps = false;   // inside of a temporal operator
};

const char* Flipped(CompareOp op) {
  switch (op) {
    case CompareOp::kLess:
      return ">";
    case CompareOp::kLessEqual:
      return ">=";
    case CompareOp::kGreater:
      return "<";
    case CompareOp::kGreaterEqual:
      return "<=";
    case CompareOp::kEqual:
      return "==";
    case CompareOp::kNotEqual:
      return "!=";
  }
  return "";
}

// The signal that an expression is, or that it is one number of; null: it is computed from more.
const Node* SignalOf(const Node& expression) {
  if (expression.kind == Kind::kSignal) return &expression;
  if (expression.kind != Kind::kAggregate) return nullptr;
  const Node& below = expression.child(0);
  return below.kind == Kind::kSignal ? &below : nullptr;
}

class Sketcher {
 public:
  explicit Sketcher(const Evaluator& evaluator) : evaluator_(evaluator) {}

  void Visit(const Node& node, const Place& place) {
    if (node.kind == Kind::kCompare) return AddComparison(node, place);
    if (node.kind == Kind::kDetector) return AddSignals(node, node, place);
    Place below = place;
    if (IsTemporal(node.kind)) {
      if (!place.is_at_steps && !IsPast(node.kind)) below.steps = StepsIn(node.window);
      below.is_at_steps = true;
    }
    for (const auto& child : node.children) Visit(*child, below);
  }

  std::vector<Sketch> Take() { return std::move(sketches_); }

 private:
  int steps() const { return evaluator_.context().steps(); }

  std::pair<int, int> StepsIn(const Window& window) const {
    if (!window.given || window.in_seconds) return {0, steps()};
    const double from = std::max(window.from.value_or(0), 0.0);
    const double last = std::min(window.to.value_or(steps()), steps() - 1.0);
    return {static_cast<int>(from), static_cast<int>(last) + 1};
  }

  Sketch& Add(const Node& part, const Node& signal, const Place& place) {
    Sketch sketch;
    sketch.signal = signal.name + (signal.glob ? "{" + *signal.glob + "}" : "");
    sketch.arm = signal.arm;
    sketch.rank = signal.rank.value_or(0);
    sketch.begin = part.begin;
    sketch.end = part.end;
    sketch.from = place.steps.first;
    sketch.to = place.steps.second;
    if (signal.slice.is_index) {
      const int at = signal.slice.from.value_or(0);
      sketch.from = at < 0 ? at + steps() : at;
      sketch.to = sketch.from + 1;
    } else if (signal.slice.given) {
      std::tie(sketch.from, sketch.to) = StepsOf(signal.slice, steps());
    }
    sketches_.push_back(std::move(sketch));
    return sketches_.back();
  }

  void AddSignals(const Node& part, const Node& below, const Place& place) {
    ForEach(below, [&](const Node& node) {
      if (node.kind == Kind::kSignal && !IsFull()) Add(part, node, place);
    });
  }

  void AddComparison(const Node& node, const Place& place) {
    const Node* left = SignalOf(node.child(0));
    const Node* right = SignalOf(node.child(1));
    if (left == nullptr && right == nullptr) return AddSignals(node, node, place);
    if (IsFull()) return;
    Sketch& sketch = Add(node, left != nullptr ? *left : *right, place);
    sketch.threshold = NumbersOf(node.child(left != nullptr ? 1 : 0), place);
    if (sketch.threshold.empty()) return;
    sketch.comparison = left != nullptr ? std::string(ToString(node.op)) : Flipped(node.op);
  }

  // Of those that are not known NaN; empty: none is.
  std::vector<double> NumbersOf(const Node& expression, const Place& place) const {
    std::vector<double> numbers;
    bool is_any_known = false;
    for (const Interval& number : evaluator_.Numbers(expression, Scope{}, place.is_at_steps)) {
      const bool is_known = number.lo == number.hi && std::isfinite(number.lo);
      is_any_known |= is_known;
      numbers.push_back(is_known ? number.lo : std::numeric_limits<double>::quiet_NaN());
    }
    if (!is_any_known) numbers.clear();
    return numbers;
  }

  bool IsFull() const { return sketches_.size() >= kMostSketches; }

  const Evaluator& evaluator_;
  std::vector<Sketch> sketches_;
};

}  // namespace

std::vector<Sketch> SketchesOf(const Evaluator& evaluator, const Node& root) {
  Sketcher sketcher(evaluator);
  sketcher.Visit(root, {{0, evaluator.context().steps()}, false});
  return sketcher.Take();
}

}  // namespace trainwreck::formula
