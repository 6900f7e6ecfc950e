#include "harness/formula/naive_oracle.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "harness/formula/detectors.h"
#include "harness/formula/test_support.h"
#include "harness/formula/typing.h"

namespace trainwreck::formula::testing {
namespace {

Value Truth(Tri truth) {
  Value value;
  value.truth = truth;
  return value;
}

Value WithMargin(Tri truth, Unit unit, Interval margin) {
  Value value = Truth(truth);
  value.has[static_cast<int>(unit)] = true;
  value.margins[static_cast<int>(unit)] = margin;
  return value;
}

double PlainMedian(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1 || values[half] == values[half - 1]) return values[half];
  return (values[half - 1] + values[half]) / 2;
}

bool Holds(CompareOp op, double left, double right) {
  switch (op) {
    case CompareOp::kLess:
      return left < right;
    case CompareOp::kLessEqual:
      return left <= right;
    case CompareOp::kGreater:
      return left > right;
    case CompareOp::kGreaterEqual:
      return left >= right;
    case CompareOp::kEqual:
      return left == right;
    case CompareOp::kNotEqual:
      return left != right;
  }
  return false;
}

}  // namespace

double NaiveOracle::Sample(const Node& signal, int step) const {
  auto found = run_.series.find({signal.name, 0});
  return found != run_.series.end() && found->second.Has(step) ? found->second.values[step] : kNan;
}

double NaiveOracle::Number(const Node& node, int step) const {
  const int steps = run_.planned_steps;
  switch (node.kind) {
    case Kind::kNumber:
      return node.number;
    case Kind::kSignal:
      if (!node.slice.is_index) return Sample(node, step);
      return Sample(node, *node.slice.from < 0 ? *node.slice.from + steps : *node.slice.from);
    case Kind::kAggregate: {
      const Slice& slice = node.child(0).slice;
      int from = slice.from.value_or(0), to = slice.to.value_or(steps);
      if (from < 0) from += steps;
      if (to < 0) to += steps;
      std::vector<double> values;
      for (int s = from; s < to; ++s) values.push_back(Sample(node.child(0), s));
      double sum = 0;
      for (double value : values) sum += value;
      if (values.empty() || std::isnan(sum)) {
        // inf - inf is no NaN sample, but a median may still stand.
        for (double value : values) {
          if (std::isnan(value)) return kNan;
        }
        if (values.empty() || node.aggregate != Aggregate::kMedian) return kNan;
      }
      if (node.aggregate == Aggregate::kMedian) return PlainMedian(values);
      if (node.aggregate == Aggregate::kSum) return sum;
      return sum / static_cast<double>(values.size());
    }
    case Kind::kMultiply:
      return Number(node.child(0), step) * Number(node.child(1), step);
    case Kind::kAdd:
      return Number(node.child(0), step) + Number(node.child(1), step);
    default:
      return kNan;
  }
}

bool NaiveOracle::Lacks(const Node& node, int step, bool for_good) const {
  if (node.kind == Kind::kAggregate) return false;
  if (node.kind != Kind::kSignal) {
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](const auto& child) { return Lacks(*child, step, for_good); });
  }
  if (node.slice.given || !TestTarget().FindSignal(node.name)->sparse) return false;
  auto found = run_.series.find({node.name, 0});
  if (found != run_.series.end() && found->second.Has(step)) return false;
  return !for_good || step < run_.last_step(0) || (run_.finished && step == run_.last_step(0));
}

// Written down as it is explained: if at some step nothing is missing, the open ones count for
// nothing, however good (or bad) they might have been.
Value NaiveOracle::Over(const Node& operand, const std::vector<int>& steps, bool smallest) const {
  std::vector<Value> values;
  bool any_whole = false;
  for (int step : steps) {
    values.push_back(At(operand, step));
    any_whole |= step < run_.planned_steps && !values.back().lacking;
  }
  Value result = Truth(smallest ? kYes : kNo);
  for (Value value : values) {
    if (any_whole && value.open) {
      value.truth = smallest ? kYes : kNo;
      for (Interval& margin : value.margins) {
        margin = smallest ? Interval{margin.hi, margin.hi} : Interval{margin.lo, margin.lo};
      }
    }
    value.open = value.lacking = false;
    result = smallest ? And(result, value) : Or(result, value);
  }
  return values.empty() ? Truth(kMaybe) : result;
}

Value NaiveOracle::CompareAt(const Node& node, int step) const {
  const bool octaves = ComparesInOctaves(node, TestTarget());
  const Unit unit = octaves ? Unit::kOctave : Unit::kPlain;
  if (Lacks(node, step, /*for_good=*/true)) {
    Value open = WithMargin(kMaybe, unit, kAll);
    open.open = open.lacking = true;
    return open;
  }
  const double left = Number(node.child(0), step), right = Number(node.child(1), step);
  if (std::isnan(left) || std::isnan(right)) {
    const Interval any = node.op == CompareOp::kEqual      ? Interval{-kInf, 0}
                         : node.op == CompareOp::kNotEqual ? Interval{0, kInf}
                                                           : kAll;
    Value unknown = WithMargin(kMaybe, unit, any);
    unknown.lacking = Lacks(node, step, /*for_good=*/false);
    return unknown;
  }
  double margin = left == right ? 0 : octaves ? std::log2(right / left) : right - left;
  if (node.op == CompareOp::kEqual) {
    margin = -std::abs(margin);
  } else if (node.op == CompareOp::kNotEqual) {
    margin = std::abs(margin);
  } else if (node.op == CompareOp::kGreater || node.op == CompareOp::kGreaterEqual) {
    margin = left == right ? 0 : octaves ? std::log2(left / right) : left - right;
  }
  return WithMargin(Holds(node.op, left, right) ? kYes : kNo, unit, {margin, margin});
}

Value NaiveOracle::DetectorAt(const Node& node, int step) const {
  const Node& signal = node.child(0);
  const int window = static_cast<int>(node.parameter("window"));
  const double now = Sample(signal, step);
  if (node.detector->name == "nonfinite") {
    auto found = run_.series.find({signal.name, 0});
    if (found == run_.series.end() || !found->second.Has(step)) {
      Value missing = Truth(kMaybe);
      missing.open = Lacks(signal, step, /*for_good=*/true);
      missing.lacking = Lacks(signal, step, /*for_good=*/false);
      return missing;
    }
    return Truth(std::isfinite(now) ? kNo : kYes);
  }
  if (node.detector->name == "spike") {
    if (step == 0 || now <= 0) return WithMargin(kNo, Unit::kOctave, MarginOf(kNo));
    std::vector<double> before;
    for (int s = std::max(0, step - window); s < step; ++s) before.push_back(Sample(signal, s));
    bool unknown = std::isnan(now);
    for (double value : before) unknown |= std::isnan(value);
    if (unknown) return WithMargin(kMaybe, Unit::kOctave, kAll);
    const double level = node.parameter("ratio") * PlainMedian(before);
    const double margin = now == level ? 0 : std::log2(now / level);
    return WithMargin(now >= level ? kYes : kNo, Unit::kOctave, {margin, margin});
  }
  if (node.detector->name != "oscillates") throw std::logic_error("no oracle for a detector");
  if (step + 1 < window) return WithMargin(kNo, Unit::kPlain, MarginOf(kNo));
  double sure = 0, possible = 0;
  for (int s = step - window + 2; s < step; ++s) {
    const double before = Sample(signal, s) - Sample(signal, s - 1);
    const double after = Sample(signal, s + 1) - Sample(signal, s);
    const bool unknown = std::isnan(before) || std::isnan(after);
    sure += !unknown && before * after < 0 ? 1 : 0;
    possible += unknown || before * after < 0 ? 1 : 0;
  }
  const double crossings = node.parameter("crossings");
  const Tri truth = sure >= crossings ? kYes : possible < crossings ? kNo : kMaybe;
  return WithMargin(truth, Unit::kPlain, {sure - crossings, possible - crossings});
}

Value NaiveOracle::TemporalAt(const Node& node, int step) const {
  const int steps = run_.planned_steps;
  const int from =
      static_cast<int>(node.window.from.value_or(node.kind == Kind::kPrecedes ? 1 : 0));
  // Without an end, to the last step; a window that begins beyond it sees one unknown step.
  const int last =
      node.window.to ? step + static_cast<int>(*node.window.to) : std::max(steps - 1, step + from);
  switch (node.kind) {
    case Kind::kAtEnd: {
      Value value = At(node.child(0), steps - 1);
      value.open = value.lacking = false;
      return value;
    }
    case Kind::kAlways:
    case Kind::kEventually:
    case Kind::kNever: {
      std::vector<int> window;
      for (int s = step + from; s <= last; ++s) window.push_back(s);
      const Value value = Over(node.child(0), window, node.kind == Kind::kAlways);
      return node.kind == Kind::kNever ? Not(value) : value;
    }
    case Kind::kOnce:
    case Kind::kHistorically: {
      const int first = node.window.to ? std::max(step - static_cast<int>(*node.window.to), 0) : 0;
      std::vector<int> window;
      for (int s = first; s <= step - from; ++s) window.push_back(s);
      return Over(node.child(0), window, node.kind == Kind::kHistorically);
    }
    case Kind::kUntil: {
      Value value = Truth(kNo);
      for (int s = step + from; s <= last; ++s) {
        Value reached = At(node.child(1), s);
        for (int before = step; before < s; ++before) {
          reached = And(reached, At(node.child(0), before));
        }
        value = Or(value, reached);
      }
      return value;
    }
    case Kind::kPrecedes: {
      const int longest = static_cast<int>(node.window.to.value_or(steps));
      Value value = Truth(kNo);
      for (int first = step; first < steps; ++first) {
        Value led = Truth(kNo);
        for (int lead = from; lead <= longest && lead <= first; ++lead) {
          led = Or(led, At(node.child(0), first - lead));
        }
        led = And(led, At(node.child(1), first));
        for (int before = step; before < first; ++before) {
          led = And(led, Not(At(node.child(1), before)));
        }
        value = Or(value, led);
      }
      return value;
    }
    default:
      return Truth(kMaybe);
  }
}

Value NaiveOracle::At(const Node& node, int step) const {
  if (step >= run_.planned_steps) return Truth(kMaybe);
  switch (node.kind) {
    case Kind::kCompare:
      return CompareAt(node, step);
    case Kind::kDetector:
      return DetectorAt(node, step);
    case Kind::kEvent: {
      for (const Event& event : run_.events) {
        if (event.name == node.name && event.step == step) return Truth(kYes);
      }
      return Truth(run_.finished ? kNo : kMaybe);
    }
    case Kind::kNot:
      return Not(At(node.child(0), step));
    case Kind::kImplies:
      return Or(Not(At(node.child(0), step)), At(node.child(1), step));
    case Kind::kAnd:
    case Kind::kOr: {
      Value value = At(node.child(0), step);
      for (std::size_t i = 1; i < node.children.size(); ++i) {
        const Value next = At(node.child(i), step);
        value = node.kind == Kind::kAnd ? And(value, next) : Or(value, next);
      }
      return value;
    }
    case Kind::kHolds: {
      const int length = static_cast<int>(node.parameter("for"));
      Value value = At(node.child(0), step);
      for (int s = step - 1; s > step - length; --s) {
        value = And(value, s < 0 ? Truth(kNo) : At(node.child(0), s));
      }
      return value;
    }
    default:
      return TemporalAt(node, step);
  }
}

Value NaiveOracle::OverRun(const Node& node) const {
  switch (node.kind) {
    case Kind::kNot:
      return Not(OverRun(node.child(0)));
    case Kind::kImplies:
      return Or(Not(OverRun(node.child(0))), OverRun(node.child(1)));
    case Kind::kAnd:
    case Kind::kOr: {
      Value value = OverRun(node.child(0));
      for (std::size_t i = 1; i < node.children.size(); ++i) {
        const Value next = OverRun(node.child(i));
        value = node.kind == Kind::kAnd ? And(value, next) : Or(value, next);
      }
      return value;
    }
    case Kind::kEvent: {
      for (const Event& event : run_.events) {
        if (event.name == node.name) return Truth(kYes);
      }
      return Truth(run_.finished ? kNo : kMaybe);
    }
    default:
      return At(node, 0);
  }
}

}  // namespace trainwreck::formula::testing
