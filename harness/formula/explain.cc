#include "harness/formula/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "harness/formula/detectors.h"

namespace trainwreck::formula {
namespace {

constexpr std::size_t kMaxSeen = 400;  // bytes; longer texts hide what they say

std::string NumberText(const Interval& x) {
  if (IsPoint(x)) return fmt::format("{:.6g}", x.lo);
  if (IsAll(x)) return "unknown";
  if (x.hi == kInfinity) return fmt::format("at least {:.6g}", x.lo);
  if (x.lo == -kInfinity) return fmt::format("at most {:.6g}", x.hi);
  return fmt::format("{:.6g} to {:.6g}", x.lo, x.hi);
}

class Explainer {
 public:
  Explainer(const Evaluator& evaluator, const Node& root, Tri truth) : evaluator_(evaluator) {
    truths_[KeyOf(root, {})] = truth;
  }

  Explanation OverRun(const Node& node, const Scope& scope) const {
    switch (node.kind) {
      case Kind::kCompare:
        return {-1, Operands(node, DecisiveOverRun(node, scope), std::nullopt)};
      case Kind::kEvent:
        return Event(node, scope);
      case Kind::kNot:
        return OverRun(node.child(0), scope);
      case Kind::kImplies: {
        const bool vacuous = TruthOverRun(node.child(0), scope) == kNo;
        return OverRun(node.child(vacuous ? 0 : 1), scope);
      }
      case Kind::kAnd:
      case Kind::kOr: {
        const Tri truth = TruthOverRun(node, scope);
        Explanation joined;
        for (const auto& child : node.children) {
          if (TruthOverRun(*child, scope) != truth) continue;
          Explanation part = OverRun(*child, scope);
          if (joined.step < 0) joined.step = part.step;
          joined.seen += (joined.seen.empty() ? "" : "; ") + part.seen;
        }
        return joined;
      }
      case Kind::kAllRanks:
      case Kind::kAnyRank:
      case Kind::kAnyModule: {
        const auto [each, name] = DecisiveChoice(
            node, scope, [&](const Scope& s) { return TruthOverRun(node.child(0), s); },
            TruthOverRun(node, scope));
        if (!each) return {-1, "no module matches"};
        Explanation part = OverRun(node.child(0), *each);
        part.seen = name + ": " + part.seen;
        return part;
      }
      case Kind::kPrecedes:
      case Kind::kUntil:
        return Pair(node, scope);
      default:
        if (IsTemporal(node.kind) && evaluator_.context().steps() > 0) return Temporal(node, scope);
        return {-1, "unknown"};
    }
  }

 private:
  // Explaining looks at the same parts again and again; each is evaluated once.
  using Key = std::tuple<const Node*, int, std::map<std::string, std::string>>;
  static Key KeyOf(const Node& node, const Scope& scope) {
    return {&node, scope.in_ranks ? scope.rank : -1, scope.modules};
  }

  Tri TruthOverRun(const Node& node, const Scope& scope) const {
    auto [entry, is_new] = truths_.try_emplace(KeyOf(node, scope), kMaybe);
    if (is_new) entry->second = evaluator_.OverRun(node, scope).truth;
    return entry->second;
  }

  const Track& TrackOf(const Node& node, const Scope& scope) const {
    auto [entry, is_new] = tracks_.try_emplace(KeyOf(node, scope));
    if (is_new) entry->second = evaluator_.AtSteps(node, scope);
    return entry->second;
  }

  // The first choice of rank or modules that has the truth of the whole.
  template <typename TruthOf>
  std::pair<std::optional<Scope>, std::string> DecisiveChoice(const Node& node, const Scope& scope,
                                                              TruthOf truth_of, Tri truth) const {
    std::vector<Scope> scopes;
    if (node.kind == Kind::kAllRanks || node.kind == Kind::kAnyRank) {
      for (int rank = 0; rank < evaluator_.context().self().world_size; ++rank) {
        scopes.push_back(scope);
        scopes.back().rank = rank;
        scopes.back().in_ranks = true;
      }
    } else {
      scopes = evaluator_.context().Bound(node, scope);
    }
    for (const Scope& each : scopes) {
      if (truth_of(each) == truth) return {each, NameOf(node, each, scope)};
    }
    return {};
  }

  static std::string NameOf(const Node& node, const Scope& each, const Scope& outer) {
    if (node.kind == Kind::kAllRanks || node.kind == Kind::kAnyRank) {
      return fmt::format("rank {}", each.rank);
    }
    std::string name;
    for (const auto& [glob, module] : each.modules) {
      if (outer.modules.contains(glob)) continue;
      name += (name.empty() ? "" : ", ") + module;
    }
    return name;
  }

  // The modules that decide a comparison which must hold for all.
  std::optional<Scope> DecisiveOverRun(const Node& node, const Scope& scope) const {
    const Tri truth = TruthOverRun(node, scope);
    for (const Scope& bound : evaluator_.context().Bound(node, scope)) {
      if (TruthOverRun(node, bound) == truth) return bound;
    }
    return std::nullopt;
  }

  // "lhs = 3.2, rhs = 4.1", numbers left out; at a step, or over the run.
  std::string Operands(const Node& node, const std::optional<Scope>& scope,
                       std::optional<int> step) const {
    if (!scope) return "no module matches in " + ToText(node);
    std::string seen;
    for (const auto& side : node.children) {
      if (side->kind == Kind::kNumber) continue;
      const std::vector<Interval> numbers = evaluator_.Numbers(*side, *scope, step.has_value());
      const Interval number = numbers.size() == 1 ? numbers[0] : numbers[step.value_or(0)];
      seen += (seen.empty() ? "" : ", ") + WithModules(*side, *scope) + " = ";
      seen += side->kind == Kind::kSignal && IsAll(number) && step ? RawText(*side, *scope, *step)
                                                                   : NumberText(number);
    }
    return seen;
  }

  std::string WithModules(const Node& node, const Scope& scope) const {
    std::string text = ToText(node);
    for (const auto& [glob, module] : scope.modules) {
      const std::string pattern = "{" + glob + "}";
      for (std::size_t at = 0; (at = text.find(pattern, at)) != std::string::npos;) {
        text.replace(at, pattern.size(), "{" + module + "}");
        at += module.size() + 2;
      }
    }
    return text;
  }

  // NaN, or that there is none.
  std::string RawText(const Node& signal, const Scope& scope, int step) const {
    const Samples samples = evaluator_.context().SamplesOf(signal, scope);
    if (samples.At(step) != SampleState::kPresent) return "missing";
    return fmt::format("{:.6g}", samples.Raw(step));
  }

  Explanation Event(const Node& node, const Scope& scope) const {
    const auto events = evaluator_.context().EventsOf(node, scope);
    if (events.empty()) {
      return {-1,
              (evaluator_.context().EventsMayGrow(node) ? "not seen yet: " : "no ") + ToText(node)};
    }
    const int step = evaluator_.context().StepOf(*events[0]);
    std::string where = fmt::format("{} at step {}", ToText(node), step);
    if (events[0]->rank >= 0) where += fmt::format(" on rank {}", events[0]->rank);
    return {step, where};
  }

  // What the atoms that decide show at one step.
  std::string AtStep(const Node& node, const Scope& scope, int step) const {
    const Tri truth = TrackOf(node, scope).truth[step];
    auto truth_at = [&](const Scope& s) { return TrackOf(node, s).truth[step]; };
    switch (node.kind) {
      case Kind::kNot:
        return AtStep(node.child(0), scope, step);
      case Kind::kImplies:
      case Kind::kAnd:
      case Kind::kOr: {
        std::string seen;
        for (std::size_t i = 0; i < node.children.size(); ++i) {
          Tri own = TrackOf(node.child(i), scope).truth[step];
          if (node.kind == Kind::kImplies && i == 0) own = static_cast<Tri>(-own);
          if (own != truth) continue;
          seen += (seen.empty() ? "" : "; ") + AtStep(node.child(i), scope, step);
        }
        return seen;
      }
      case Kind::kAllRanks:
      case Kind::kAnyRank:
      case Kind::kAnyModule: {
        auto inner = [&](const Scope& s) { return TrackOf(node.child(0), s).truth[step]; };
        const auto [each, name] = DecisiveChoice(node, scope, inner, truth);
        return each ? name + ": " + AtStep(node.child(0), *each, step) : "no module matches";
      }
      case Kind::kCompare:
        return Operands(node, DecisiveChoice(node, scope, truth_at, truth).first, step);
      case Kind::kDetector: {
        const auto bound = DecisiveChoice(node, scope, truth_at, truth).first;
        if (!bound || node.child(0).kind != Kind::kSignal) return "unknown";
        return WithModules(node.child(0), *bound) + " = " + RawText(node.child(0), *bound, step);
      }
      default:
        return ToText(node) + (truth == kYes ? " holds" : truth == kNo ? " fails" : " is unknown");
    }
  }

  // The steps that a unary operator looks at; for seconds all of them.
  std::pair<int, int> Reach(const Node& node) const {
    const int last = evaluator_.context().steps() - 1;
    if (node.kind == Kind::kAtEnd) return {last, last};
    if (node.window.in_seconds) return {0, last};
    const double from = node.window.from.value_or(0), to = node.window.to.value_or(last);
    return {static_cast<int>(std::min<double>(from, last)),
            static_cast<int>(std::min<double>(to, last))};
  }

  Explanation Temporal(const Node& node, const Scope& scope) const {
    const Node& child = node.child(0);
    if (child.kind == Kind::kEvent && node.window.in_seconds) return Event(child, scope);
    const Tri whole = TruthOverRun(node, scope);
    const Track& track = TrackOf(child, scope);
    const auto [from, to] = Reach(node);
    // The child's truth that decided; `never p` is decided by a p.
    const Tri decisive = node.kind == Kind::kNever ? static_cast<Tri>(-whole) : whole;
    const bool by_one = whole == kMaybe || node.kind == Kind::kAtEnd ||
                        (whole == kYes) == (node.kind == Kind::kEventually);
    int step = by_one ? Deciding(track, decisive, from, to) : Extremum(node, track, from, to);
    std::string range = fmt::format("steps {} to {}", from, to);
    if (step < 0) {  // nothing but truths: say when it came, if ever
      const int later = First(track, kYes, to + 1, track.size() - 1);
      if (child.kind == Kind::kEvent && later < 0) return Event(child, scope);
      std::string seen = ToText(child) + (decisive == kYes ? " at all " : " at none of ") + range;
      if (later >= 0 && decisive == kNo) seen += fmt::format("; first at step {}", later);
      return {later, seen};
    }
    if (child.kind == Kind::kEvent && decisive == kYes) return Event(child, scope);
    return {step, fmt::format("{} at step {}", AtStep(child, scope, step), step)};
  }

  // For an unknown truth, a step that is unknown; where there is none, a step without a sample.
  static int Deciding(const Track& track, Tri truth, int from, int to) {
    if (truth == kMaybe && track.HasOpen()) {
      for (int step = std::max(from, 0); step <= to && step < track.size(); ++step) {
        if (track.truth[step] == kMaybe && track.open[step] == 0) return step;
      }
    }
    return First(track, truth, from, to);
  }

  static int First(const Track& track, Tri truth, int from, int to) {
    for (int step = std::max(from, 0); step <= to && step < track.size(); ++step) {
      if (track.truth[step] == truth) return step;
    }
    return -1;
  }

  // Where an operator that no single step decides came closest to flipping.
  static int Extremum(const Node& node, const Track& track, int from, int to) {
    const bool largest = node.kind != Kind::kAlways;
    for (int unit : kTrackUnits) {
      if (!track.Has(unit)) continue;
      int best = -1;
      for (int step = from; step <= to; ++step) {
        const double margin = track.lo[unit][step];
        if (!std::isfinite(margin)) continue;
        if (best < 0 || (largest ? margin > track.lo[unit][best] : margin < track.lo[unit][best])) {
          best = step;
        }
      }
      return best;
    }
    return -1;
  }

  // until and precedes: where each side first holds.
  Explanation Pair(const Node& node, const Scope& scope) const {
    Explanation result;
    for (int side = 1; side >= 0; --side) {
      const Node& child = node.child(side);
      const Track& track = TrackOf(child, scope);
      int first = First(track, kYes, 0, track.size() - 1);
      const int q = result.step;
      if (side == 0 && node.kind == Kind::kPrecedes && q >= 0) {
        // The last one before it is the one that warned.
        for (int step = first; step >= 0 && step < q; ++step) {
          if (track.truth[step] == kYes) first = step;
        }
      }
      const bool lead = side == 0 && node.kind == Kind::kPrecedes;
      std::string seen = ToText(child);
      if (first < 0) {
        seen += First(track, kMaybe, 0, track.size() - 1) >= 0 ? " not known to hold" : " never";
      } else {
        seen += fmt::format(" {}at step {}", lead ? "" : "first ", first);
        const std::string values = child.kind == Kind::kEvent ? "" : AtStep(child, scope, first);
        if (!values.empty()) seen += " (" + values + ")";
      }
      result.seen += (result.seen.empty() ? "" : "; ") + seen;
      if (side == 1) result.step = first;
    }
    return result;
  }

  const Evaluator& evaluator_;
  mutable std::map<Key, Tri> truths_;
  mutable std::map<Key, Track> tracks_;
};

}  // namespace

Explanation Explain(const Evaluator& evaluator, const Node& root, Tri truth) {
  Explanation explanation = Explainer(evaluator, root, truth).OverRun(root, {});
  if (explanation.seen.size() > kMaxSeen) {
    std::size_t end = kMaxSeen;
    while (end > 0 && (static_cast<unsigned char>(explanation.seen[end]) & 0xC0) == 0x80) --end;
    explanation.seen = explanation.seen.substr(0, end) + "...";
  }
  return explanation;
}

}  // namespace trainwreck::formula
