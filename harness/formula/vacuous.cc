#include "harness/formula/vacuous.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "harness/formula/samples.h"
#include "harness/formula/value.h"

namespace trainwreck::formula {
namespace {

constexpr int kMaxParts = 8;  // of one truth table

// A number that arithmetic on constants and factors does not reach into: a signal, a function.
struct Term {
  const Node* node = nullptr;
  double factor = 0;
  Interval range = kAll;
};

// constant + sum of factor * term, terms by their canonical text.
struct Linear {
  double constant = 0;
  std::map<std::string, Term> terms;
};

bool IsNothing(double factor, double scale) { return std::abs(factor) <= 1e-12 * scale; }

Linear Sum(Linear a, const Linear& b, double factor) {
  a.constant += factor * b.constant;
  for (const auto& [text, term] : b.terms) {
    auto [entry, is_new] = a.terms.try_emplace(text, term);
    const double before = is_new ? 0 : entry->second.factor;
    entry->second.factor = before + factor * term.factor;
    const double scale = std::max(std::abs(before), std::abs(factor * term.factor));
    if (IsNothing(entry->second.factor, scale)) a.terms.erase(entry);
  }
  return a;
}

// b = k * a for some k.
std::optional<double> RatioOf(const Linear& a, const Linear& b) {
  if (a.terms.empty() || a.terms.size() != b.terms.size()) return std::nullopt;
  const auto found = b.terms.find(a.terms.begin()->first);
  if (found == b.terms.end()) return std::nullopt;
  const double ratio = found->second.factor / a.terms.begin()->second.factor;
  const Linear rest = Sum(b, a, -ratio);
  return rest.terms.empty() && IsNothing(rest.constant, 1 + std::abs(b.constant))
             ? std::optional<double>(ratio)
             : std::nullopt;
}

class VacuousFinder {
 public:
  VacuousFinder(const Vocabulary& vocabulary, std::string own_arm)
      : vocabulary_(vocabulary), own_arm_(std::move(own_arm)) {}

  std::vector<FormulaError> Run(const Node& root) {
    Look(root, /*over_run=*/true);
    return std::move(found_);
  }

 private:
  // --- Numbers

  const SignalInfo* InfoOf(const Node& signal) const {
    return vocabulary_.target == nullptr ? nullptr : vocabulary_.target->FindSignal(signal.name);
  }

  // The same number has the same text: "loss" of the run's own arm and of `own_arm_` alike.
  std::string TextOf(const Node& node) const {
    if (node.kind == Kind::kSignal || node.kind == Kind::kEvent) {
      std::string text = ToText(node);
      const std::string prefix = node.arm + ".";
      if (!own_arm_.empty() && node.arm == own_arm_ && text.rfind(prefix, 0) == 0) {
        text = text.substr(prefix.size());
      }
      return text;
    }
    std::string text = fmt::format("({}:{}:{}", static_cast<int>(node.kind),
                                   static_cast<int>(node.aggregate), static_cast<int>(node.op));
    if (node.kind == Kind::kNumber) text += fmt::format(" {}", node.number);
    if (node.window.given) {
      text += fmt::format(" [{}:{}{}]", node.window.from.value_or(0),
                          node.window.to ? fmt::format("{}", *node.window.to) : "",
                          node.window.in_seconds ? "s" : "");
    }
    for (const auto& [key, parameter] : node.parameters) {
      text += fmt::format(" {}={}", key, parameter.value);
    }
    if (node.kind == Kind::kRecipe) text += " " + node.name;
    for (const auto& child : node.children) text += " " + TextOf(*child);
    return text + ")";
  }

  Interval RangeOf(const Node& node) const {
    switch (node.kind) {
      case Kind::kSignal: {
        const SignalInfo* info = InfoOf(node);
        const bool is_positive = info != nullptr && info->scale == Scale::kLog;
        return {is_positive ? 0 : -kInfinity, kInfinity};
      }
      case Kind::kAggregate:
        if (node.aggregate == Aggregate::kSlope) return kAll;
        if (node.aggregate == Aggregate::kStd) return {0, kInfinity};
        if (node.aggregate == Aggregate::kCount) return {0, LengthOf(node.child(0))};
        return RangeOf(node.child(0));
      case Kind::kOverlap:
        return {0, LengthOf(node.child(0))};
      case Kind::kStep:
      case Kind::kSqrt:
      case Kind::kSpread:
      case Kind::kAbs:
      case Kind::kDistance:
      case Kind::kRounding:
      case Kind::kSeedSpread:
        return {0, kInfinity};
      default:
        return kAll;
    }
  }

  std::optional<std::pair<int, int>> StepsIn(const Node& signal) const {
    if (vocabulary_.planned_steps <= 0 || signal.kind != Kind::kSignal) return std::nullopt;
    if (!signal.slice.given) return std::nullopt;
    if (!signal.slice.is_index) return StepsOf(signal.slice, vocabulary_.planned_steps);
    const int at = signal.slice.from.value_or(0);
    const int step = at < 0 ? at + vocabulary_.planned_steps : at;
    return std::pair(step, step + 1);
  }

  double LengthOf(const Node& signal) const {
    const auto steps = StepsIn(signal);
    return steps ? steps->second - steps->first : kInfinity;
  }

  Linear Alone(const Node& node) const {
    Linear linear;
    linear.terms[TextOf(node)] = {&node, 1, RangeOf(node)};
    return linear;
  }

  static Linear Number(double number) {
    Linear linear;
    linear.constant = number;
    return linear;
  }

  static bool IsFinite(const Linear& linear) { return std::isfinite(linear.constant); }

  Linear LinearOf(const Node& node) const {
    switch (node.kind) {
      case Kind::kNumber:
        return Number(node.number);
      case Kind::kNegate:
        return Sum({}, LinearOf(node.child(0)), -1);
      case Kind::kAdd:
      case Kind::kSubtract:
        return Sum(LinearOf(node.child(0)), LinearOf(node.child(1)),
                   node.kind == Kind::kAdd ? 1 : -1);
      case Kind::kMultiply: {
        const Linear a = LinearOf(node.child(0)), b = LinearOf(node.child(1));
        if (a.terms.empty()) return Sum({}, b, a.constant);
        if (b.terms.empty()) return Sum({}, a, b.constant);
        return Product(node, a, b);
      }
      case Kind::kDivide: {
        const Linear a = LinearOf(node.child(0)), b = LinearOf(node.child(1));
        if (b.terms.empty() && b.constant != 0) return Sum({}, a, 1 / b.constant);
        if (const auto ratio = RatioOf(b, a)) return Number(*ratio);
        return Product(node, a, b);
      }
      case Kind::kAbs: {
        const Linear inside = LinearOf(node.child(0));
        if (inside.terms.empty()) return Number(std::abs(inside.constant));
        return Alone(node);
      }
      case Kind::kLog:
      case Kind::kCos:
      case Kind::kSqrt: {
        const Linear inside = LinearOf(node.child(0));
        if (!inside.terms.empty()) return Alone(node);
        return Number(node.kind == Kind::kLog   ? std::log(inside.constant)
                      : node.kind == Kind::kCos ? std::cos(inside.constant)
                                                : std::sqrt(inside.constant));
      }
      case Kind::kSpread:
        return HasRankOfItsOwn(node) ? Number(0) : Alone(node);
      case Kind::kDistance:
        return own_arm_ == "control" ? Number(0) : Alone(node);
      case Kind::kSeedSpread:
        return own_arm_ == "control" ? Number(1) : Alone(node);
      default:
        return Alone(node);
    }
  }

  // A product or quotient that is not linear: of two positive ones it is positive.
  Linear Product(const Node& node, const Linear& a, const Linear& b) const {
    Linear product = Alone(node);
    if (RangeOf(a).lo >= 0 && RangeOf(b).lo >= 0) {
      product.terms.begin()->second.range = {0, kInfinity};
    }
    return product;
  }

  // spread(loss@0): the same number on every rank.
  static bool HasRankOfItsOwn(const Node& node) {
    bool all = true;
    ForEach(node, [&](const Node& below) {
      if (below.kind == Kind::kSignal && !below.rank) all = false;
    });
    return all;
  }

  static Interval RangeOf(const Linear& linear) {
    Interval range = Point(linear.constant);
    for (const auto& [text, term] : linear.terms) {
      const double factor = term.factor;
      const double lo = factor > 0 ? factor * term.range.lo : factor * term.range.hi;
      const double hi = factor > 0 ? factor * term.range.hi : factor * term.range.lo;
      range = {range.lo + lo, range.hi + hi};
    }
    return range;
  }

  // The signal that a function over a slice, or an index, is about; null for anything else.
  static const Node* SlicedSignal(const Node& node) {
    if (node.kind == Kind::kSignal && node.slice.is_index) return &node;
    if (node.kind != Kind::kAggregate || node.child(0).kind != Kind::kSignal) return nullptr;
    switch (node.aggregate) {
      case Aggregate::kMean:
      case Aggregate::kMedian:
      case Aggregate::kMin:
      case Aggregate::kMax:
      case Aggregate::kFirst:
      case Aggregate::kLast:
        return &node.child(0);
      default:
        return nullptr;
    }
  }

  // a >= b whatever was recorded: both of one signal, one of them the extreme of a slice in which
  // the other's lies.
  bool IsNeverLess(const Node& a, const Node& b) const {
    const Node *of_a = SlicedSignal(a), *of_b = SlicedSignal(b);
    if (of_a == nullptr || of_b == nullptr) return false;
    auto arm = [&](const Node& signal) { return signal.arm == own_arm_ ? "" : signal.arm; };
    if (of_a->name != of_b->name || of_a->glob != of_b->glob || of_a->rank != of_b->rank ||
        arm(*of_a) != arm(*of_b)) {
      return false;
    }
    auto covers = [&](const Node& outer, const Node& inner) {
      const auto wide = StepsIn(outer), narrow = StepsIn(inner);
      if (!wide || !narrow) return ToText(outer) == ToText(inner);
      return wide->first <= narrow->first && narrow->second <= wide->second;
    };
    const bool a_is_max = a.kind == Kind::kAggregate && a.aggregate == Aggregate::kMax;
    const bool b_is_min = b.kind == Kind::kAggregate && b.aggregate == Aggregate::kMin;
    return (a_is_max && covers(*of_a, *of_b)) || (b_is_min && covers(*of_b, *of_a));
  }

  // The range of a difference, with the order of two functions of one signal.
  Interval RangeOfDifference(const Linear& difference) const {
    Interval range = RangeOf(difference);
    if (difference.terms.size() != 2) return range;
    const Term& a = difference.terms.begin()->second;
    const Term& b = std::next(difference.terms.begin())->second;
    if (!IsNothing(a.factor + b.factor, std::abs(a.factor))) return range;
    const bool a_leads = IsNeverLess(*a.node, *b.node), b_leads = IsNeverLess(*b.node, *a.node);
    const double constant = difference.constant;
    if ((a_leads && a.factor > 0) || (b_leads && b.factor > 0)) {
      range.lo = std::max(range.lo, constant);
    }
    if ((a_leads && a.factor < 0) || (b_leads && b.factor < 0)) {
      range.hi = std::min(range.hi, constant);
    }
    return range;
  }

  // --- Comparisons

  // What a comparison is in every run, and why; empty where a run decides.
  std::optional<bool> DecideCompare(const Node& node, std::string* why) const {
    const Linear left = LinearOf(node.child(0)), right = LinearOf(node.child(1));
    const Linear difference = Sum(left, right, -1);
    if (!IsFinite(difference)) return std::nullopt;
    const Interval range = RangeOfDifference(difference);
    const Compared compared = Compare(node.op, range, Point(0), /*octaves=*/false);
    // An end that is reached by nothing at infinity says nothing (see Compare).
    if (compared.truth == kMaybe) return std::nullopt;
    if (difference.terms.empty()) {
      bool has_signal = false;
      ForEach(node, [&](const Node& below) { has_signal |= below.kind == Kind::kSignal; });
      *why = !has_signal ? "no signal takes part"
                         : "both sides are made of the same, their difference is always " +
                               fmt::format("{:g}", difference.constant);
    } else if (range.lo > -kInfinity && range.hi == kInfinity) {
      *why = fmt::format("the left side less the right one is never below {:g}", range.lo + 0.0);
    } else if (range.hi < kInfinity && range.lo == -kInfinity) {
      *why = fmt::format("the left side less the right one is never above {:g}", range.hi + 0.0);
    } else {
      *why = fmt::format("the left side less the right one is between {:g} and {:g}",
                         range.lo + 0.0, range.hi + 0.0);
    }
    return compared.truth == kYes;
  }

  // --- Logic

  // `not` pushed to the parts that a run decides; always and never written by eventually.
  struct Part {
    std::string text;
    bool negated = false;
  };

  Part PartOf(const Node& node) const {
    switch (node.kind) {
      case Kind::kNot: {
        Part part = PartOf(node.child(0));
        part.negated = !part.negated;
        return part;
      }
      case Kind::kEventually:
      case Kind::kNever:
      case Kind::kAlways: {
        Part inside = PartOf(node.child(0));
        if (node.kind == Kind::kAlways) inside.negated = !inside.negated;
        return {"eventually" + WindowOf(node) + (inside.negated ? " not " : " ") + inside.text,
                node.kind != Kind::kEventually};
      }
      case Kind::kOnce:
      case Kind::kHistorically: {
        Part inside = PartOf(node.child(0));
        const bool dual = node.kind == Kind::kHistorically;
        if (dual) inside.negated = !inside.negated;
        return {"once" + WindowOf(node) + (inside.negated ? " not " : " ") + inside.text, dual};
      }
      case Kind::kCompare:
        return ComparePart(node);
      default:
        return {TextOf(node), false};
    }
  }

  static std::string WindowOf(const Node& node) {
    const Window& window = node.window;
    if (!window.given) return "[0:]";
    return fmt::format("[{}:{}{}]", window.from.value_or(0),
                       window.to ? fmt::format("{}", *window.to) : "",
                       window.in_seconds ? "s" : "");
  }

  // a < b and b > a are one part, not (a < b) is b <= a.
  Part ComparePart(const Node& node) const {
    std::string left = TextOf(node.child(0)), right = TextOf(node.child(1));
    switch (node.op) {
      case CompareOp::kLess:
        return {left + " < " + right, false};
      case CompareOp::kGreater:
        return {right + " < " + left, false};
      case CompareOp::kLessEqual:
        return {right + " < " + left, true};
      case CompareOp::kGreaterEqual:
        return {left + " < " + right, true};
      case CompareOp::kEqual:
      case CompareOp::kNotEqual:
        if (right < left) std::swap(left, right);
        return {left + " == " + right, node.op == CompareOp::kNotEqual};
    }
    return {TextOf(node), false};
  }

  static bool IsLogic(Kind kind) {
    return kind == Kind::kNot || kind == Kind::kAnd || kind == Kind::kOr || kind == Kind::kImplies;
  }

  void CollectParts(const Node& node, std::map<std::string, int>& parts) const {
    if (IsLogic(node.kind)) {
      for (const auto& child : node.children) CollectParts(*child, parts);
      return;
    }
    parts.emplace(PartOf(node).text, static_cast<int>(parts.size()));
  }

  bool TruthIn(const Node& node, const std::map<std::string, int>& parts, unsigned row) const {
    switch (node.kind) {
      case Kind::kNot:
        return !TruthIn(node.child(0), parts, row);
      case Kind::kImplies:
        return !TruthIn(node.child(0), parts, row) || TruthIn(node.child(1), parts, row);
      case Kind::kAnd:
      case Kind::kOr: {
        const bool is_or = node.kind == Kind::kOr;
        for (const auto& child : node.children) {
          if (TruthIn(*child, parts, row) == is_or) return is_or;
        }
        return !is_or;
      }
      default: {
        const Part part = PartOf(node);
        return ((row >> parts.at(part.text)) & 1U) != (part.negated ? 1U : 0U);
      }
    }
  }

  // The truth of a formula that is the same whatever its parts are.
  std::optional<bool> DecideLogic(const Node& node) const {
    std::map<std::string, int> parts;
    CollectParts(node, parts);
    if (parts.size() > kMaxParts) return std::nullopt;
    const bool first = TruthIn(node, parts, 0);
    for (unsigned row = 1; row < (1U << parts.size()); ++row) {
      if (TruthIn(node, parts, row) != first) return std::nullopt;
    }
    return first;
  }

  void Add(const Node& node, bool truth, const std::string& why) {
    found_.push_back({node.begin, node.end,
                      fmt::format("this is {} in every run: {}", truth ? "true" : "false", why),
                      "compare with something that can differ: another function, slice or arm, or "
                      "a number"});
  }

  void Look(const Node& node, bool over_run) {
    std::string why;
    if (node.kind == Kind::kCompare) {
      if (const auto truth = DecideCompare(node, &why)) Add(node, *truth, why);
      return;
    }
    if (node.kind == Kind::kAnd || node.kind == Kind::kOr || node.kind == Kind::kImplies) {
      if (const auto truth = DecideLogic(node)) {
        found_.push_back(
            {node.begin, node.end,
             fmt::format("this is {} in every run: its parts {}", *truth ? "true" : "false",
                         *truth ? "leave no other case" : "contradict each other"),
             "leave out what says nothing"});
        return;
      }
    }
    // The first of a kind has none before it. (Further in, one may lie before the step.)
    if (node.kind == Kind::kPrecedes && over_run && node.window.from.value_or(1) >= 1) {
      const Part p = PartOf(node.child(0)), q = PartOf(node.child(1));
      if (p.text == q.text && p.negated == q.negated) {
        Add(node, false, "nothing comes before the first of its own kind");
        return;
      }
    }
    const bool below = over_run && !IsTemporal(node.kind);
    for (const auto& child : node.children) {
      if (!IsExpression(child->kind)) Look(*child, below);
    }
  }

  const Vocabulary& vocabulary_;
  std::string own_arm_;
  std::vector<FormulaError> found_;
};

}  // namespace

std::vector<FormulaError> FindVacuousParts(const Node& root, const Vocabulary& vocabulary,
                                           const std::string& own_arm) {
  return VacuousFinder(vocabulary, own_arm).Run(root);
}

}  // namespace trainwreck::formula
