#include "harness/formula/evaluator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "harness/formula/detectors.h"
#include "harness/formula/temporal.h"
#include "harness/formula/typing.h"

namespace trainwreck::formula {
namespace {

Value UnknownIn(Unit unit) {
  Value value;
  value.has[static_cast<int>(unit)] = true;
  return value;
}

// The units that the comparisons below would have; for where there is nothing to compare.
Value UnknownOf(const Node& node, const TargetDescription& target) {
  Value value;
  ForEach(node, [&](const Node& below) {
    if (const auto unit = AtomUnit(below, target)) value.has[static_cast<int>(*unit)] = true;
  });
  return value;
}

Value ComparedValue(const Compared& compared, Unit unit) {
  Value value = UnknownIn(unit);
  value.truth = compared.truth;
  value.margins[static_cast<int>(unit)] = compared.margin;
  return value;
}

Interval Combine(Kind kind, const Interval& x, const Interval& y) {
  switch (kind) {
    case Kind::kAdd:
      return Add(x, y);
    case Kind::kSubtract:
      return Subtract(x, y);
    case Kind::kMultiply:
      return Multiply(x, y);
    default:
      return Divide(x, y);
  }
}

Interval Applied(Kind kind, const Interval& x) {
  switch (kind) {
    case Kind::kAbs:
      return Abs(x);
    case Kind::kNegate:
      return Negate(x);
    case Kind::kLog:
      return Log(x);
    case Kind::kSqrt:
      return Sqrt(x);
    default:
      return Cos(x);
  }
}

const Interval& NumberAt(const std::vector<Interval>& numbers, std::size_t step) {
  return numbers[numbers.size() == 1 ? 0 : step];
}

// The scopes that a quantifier ranges over; how they are joined is its caller's.
std::vector<Scope> Quantified(const Node& node, const Scope& scope, const Context& context) {
  if (node.kind == Kind::kAnyModule) return context.Bound(node, scope);
  std::vector<Scope> scopes;
  if (scope.in_ranks) return {scope};  // the checker rejects it; here it must stay linear
  for (int rank = 0; rank < context.self().world_size; ++rank) {
    scopes.push_back(scope);
    scopes.back().rank = rank;
    scopes.back().in_ranks = true;
  }
  return scopes;
}

// Whether the run had fewer ranks at number i: a run may be resumed by other ranks.
bool IsOutside(std::size_t rank, const std::vector<int>& worlds, std::size_t i, bool at_steps) {
  return at_steps && i < worlds.size() && worlds[i] > 0 &&
         rank >= static_cast<std::size_t>(worlds[i]);
}

std::vector<Interval> StepNumbers(int steps) {
  std::vector<Interval> numbers(steps);
  for (int step = 0; step < steps; ++step) numbers[step] = Point(step);
  return numbers;
}

}  // namespace

std::vector<Interval> Evaluator::Numbers(const Node& node, const Scope& scope,
                                         bool at_steps) const {
  switch (node.kind) {
    case Kind::kNumber:
      return {Point(node.number)};
    case Kind::kSignal: {
      const Samples samples = context_.SamplesOf(node, scope);
      if (node.slice.is_index) {
        const int from = node.slice.from.value_or(0);
        return {samples.Known(from < 0 ? from + samples.planned_steps : from)};
      }
      if (!at_steps || node.slice.given) return {kAll};
      std::vector<Interval> numbers(context_.steps());
      for (int step = 0; step < context_.steps(); ++step) numbers[step] = samples.Known(step);
      return numbers;
    }
    case Kind::kAggregate: {
      if (node.child(0).kind != Kind::kSignal) return {kAll};
      const Samples samples = context_.SamplesOf(node.child(0), scope);
      return {
          Aggregated(node.aggregate, samples, StepsOf(node.child(0).slice, samples.planned_steps))};
    }
    case Kind::kOverlap: {
      const Node& a = node.child(0);
      const Node& b = node.child(1);
      if (a.kind != Kind::kSignal || b.kind != Kind::kSignal) return {kAll};
      const Samples first = context_.SamplesOf(a, scope), second = context_.SamplesOf(b, scope);
      return {Overlap(first, StepsOf(a.slice, first.planned_steps), second,
                      StepsOf(b.slice, second.planned_steps))};
    }
    case Kind::kSpread:
      return SpreadNumbers(node, scope, at_steps);
    case Kind::kDistance:
    case Kind::kRounding:
      if (!at_steps || node.child(0).kind != Kind::kSignal) return {kAll};
      return node.kind == Kind::kDistance ? DistanceNumbers(node.child(0), scope)
                                          : RoundingNumbers(node.child(0), scope);
    case Kind::kTotal:
      return TotalNumbers(node, scope, at_steps);
    case Kind::kSeedSpread:
      return {SeedSpread(node.child(0))};
    case Kind::kStep:
      return at_steps ? StepNumbers(context_.steps()) : std::vector<Interval>{kAll};
    case Kind::kAbs:
    case Kind::kNegate:
    case Kind::kLog:
    case Kind::kCos:
    case Kind::kSqrt: {
      std::vector<Interval> numbers = Numbers(node.child(0), scope, at_steps);
      for (Interval& x : numbers) x = Applied(node.kind, x);
      return numbers;
    }
    case Kind::kAdd:
    case Kind::kSubtract:
    case Kind::kMultiply:
    case Kind::kDivide: {
      const std::vector<Interval> left = Numbers(node.child(0), scope, at_steps);
      const std::vector<Interval> right = Numbers(node.child(1), scope, at_steps);
      if (left.empty() || right.empty()) return {};
      std::vector<Interval> numbers(std::max(left.size(), right.size()));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = Combine(node.kind, NumberAt(left, i), NumberAt(right, i));
      }
      return numbers;
    }
    default:
      return {kAll};
  }
}

std::vector<std::vector<Interval>> Evaluator::NumbersByRank(const Node& node, Scope scope,
                                                            bool at_steps) const {
  std::vector<std::vector<Interval>> by_rank;
  if (scope.in_ranks) return by_rank;
  scope.in_ranks = true;
  for (scope.rank = 0; scope.rank < context_.self().world_size; ++scope.rank) {
    by_rank.push_back(Numbers(node, scope, at_steps));
    if (by_rank.back().empty()) return {};
  }
  return by_rank;
}

std::vector<Interval> Evaluator::SpreadNumbers(const Node& node, const Scope& scope,
                                               bool at_steps) const {
  const auto by_rank = NumbersByRank(node.child(0), scope, at_steps);
  if (by_rank.empty()) return {kAll};
  const std::vector<int> worlds = context_.WorldsOf(node);
  std::vector<Interval> most = by_rank.front(), least = most;
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    const std::vector<Interval>& numbers = by_rank[rank];
    for (std::size_t i = 0; i < std::min(numbers.size(), most.size()); ++i) {
      if (IsOutside(rank, worlds, i, at_steps)) continue;
      most[i] = {std::max(most[i].lo, numbers[i].lo), std::max(most[i].hi, numbers[i].hi)};
      least[i] = {std::min(least[i].lo, numbers[i].lo), std::min(least[i].hi, numbers[i].hi)};
    }
  }
  for (std::size_t i = 0; i < most.size(); ++i) {
    const Interval apart = Subtract(most[i], least[i]);
    most[i] = {std::max(apart.lo, 0.0), std::max(apart.hi, 0.0)};
  }
  return most;
}

std::vector<Interval> Evaluator::TotalNumbers(const Node& node, const Scope& scope,
                                              bool at_steps) const {
  const auto by_rank = NumbersByRank(node.child(0), scope, at_steps);
  if (by_rank.empty()) return {kAll};
  const std::vector<int> worlds = context_.WorldsOf(node);
  std::vector<Interval> total = by_rank.front();
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    for (std::size_t i = 0; i < std::min(by_rank[rank].size(), total.size()); ++i) {
      if (IsOutside(rank, worlds, i, at_steps)) continue;
      total[i] = Add(total[i], by_rank[rank][i]);
    }
  }
  return total;
}

Value Evaluator::OverRun(const Node& node, const Scope& scope) const {
  switch (node.kind) {
    case Kind::kCompare: {
      const Unit unit = *AtomUnit(node, context_.target());
      const std::vector<Scope> scopes = context_.Bound(node, scope);
      if (scopes.empty()) return UnknownIn(unit);
      std::optional<Value> all;
      for (const Scope& bound : scopes) {
        const Compared compared =
            Compare(node.op, Numbers(node.child(0), bound, false).front(),
                    Numbers(node.child(1), bound, false).front(), unit == Unit::kOctave);
        const Value value = ComparedValue(compared, unit);
        all = all ? And(*all, value) : value;
      }
      return *all;
    }
    case Kind::kEvent: {
      Value value;
      value.has[static_cast<int>(Unit::kStep)] = true;
      value.truth = !context_.EventsOf(node, scope).empty() ? kYes
                    : context_.EventsMayGrow(node)          ? kMaybe
                                                            : kNo;
      value.margins[static_cast<int>(Unit::kStep)] = MarginOf(value.truth);
      return value;
    }
    case Kind::kNot:
      return Not(OverRun(node.child(0), scope));
    case Kind::kImplies:
      return Or(Not(OverRun(node.child(0), scope)), OverRun(node.child(1), scope));
    case Kind::kAnd:
    case Kind::kOr: {
      Value value = OverRun(node.child(0), scope);
      for (std::size_t i = 1; i < node.children.size(); ++i) {
        const Value next = OverRun(node.child(i), scope);
        value = node.kind == Kind::kAnd ? And(value, next) : Or(value, next);
      }
      return value;
    }
    case Kind::kAllRanks:
    case Kind::kAnyRank:
    case Kind::kAnyModule: {
      std::optional<Value> joined;
      for (const Scope& each : Quantified(node, scope, context_)) {
        const Value value = OverRun(node.child(0), each);
        joined = !joined                        ? value
                 : node.kind == Kind::kAllRanks ? And(*joined, value)
                                                : Or(*joined, value);
      }
      return joined ? *joined : UnknownOf(node, context_.target());
    }
    default:
      if (IsTemporal(node.kind) && context_.steps() > 0) return TemporalOverRun(node, scope);
      return UnknownOf(node, context_.target());  // detectors: the checker rejects them here
  }
}

Track Evaluator::AtSteps(const Node& node, const Scope& scope) const {
  switch (node.kind) {
    case Kind::kCompare:
    case Kind::kDetector: {
      const std::vector<Scope> scopes = context_.Bound(node, scope);
      if (scopes.empty()) return Constant(UnknownOf(node, context_.target()), context_.steps());
      std::optional<Track> all;
      for (const Scope& bound : scopes) {
        Track track = node.kind == Kind::kCompare ? CompareAtSteps(node, bound)
                                                  : DetectorAtSteps(node, bound);
        if (!all) {
          all = std::move(track);
        } else {
          AndInto(*all, std::move(track));
        }
      }
      return std::move(*all);
    }
    case Kind::kEvent:
      return EventAtSteps(node, scope);
    case Kind::kHolds:
      return HeldFor(AtSteps(node.child(0), scope), node.parameter("for"));
    case Kind::kNot: {
      Track track = AtSteps(node.child(0), scope);
      Invert(track);
      return track;
    }
    case Kind::kImplies: {
      Track track = AtSteps(node.child(0), scope);
      Invert(track);
      OrInto(track, AtSteps(node.child(1), scope));
      return track;
    }
    case Kind::kAnd:
    case Kind::kOr: {
      Track track = AtSteps(node.child(0), scope);
      for (std::size_t i = 1; i < node.children.size(); ++i) {
        Track next = AtSteps(node.child(i), scope);
        node.kind == Kind::kAnd ? AndInto(track, std::move(next)) : OrInto(track, std::move(next));
      }
      return track;
    }
    case Kind::kAllRanks:
    case Kind::kAnyRank:
    case Kind::kAnyModule: {
      std::optional<Track> joined;
      for (const Scope& each : Quantified(node, scope, context_)) {
        Track track = AtSteps(node.child(0), each);
        if (!joined) {
          joined = std::move(track);
        } else if (node.kind == Kind::kAllRanks) {
          AndInto(*joined, std::move(track));
        } else {
          OrInto(*joined, std::move(track));
        }
      }
      if (joined) return std::move(*joined);
      return Constant(UnknownOf(node, context_.target()), context_.steps());
    }
    default:
      return TemporalAtSteps(node, scope);
  }
}

Track Evaluator::CompareAtSteps(const Node& node, const Scope& scope) const {
  const Unit unit = *AtomUnit(node, context_.target());
  const std::vector<Interval> left = Numbers(node.child(0), scope, true);
  const std::vector<Interval> right = Numbers(node.child(1), scope, true);
  Track track = Constant(UnknownIn(unit), context_.steps());
  const int column = static_cast<int>(unit);
  for (int step = 0; step < track.size(); ++step) {
    const Compared compared =
        Compare(node.op, NumberAt(left, step), NumberAt(right, step), unit == Unit::kOctave);
    track.truth[step] = compared.truth;
    track.lo[column][step] = compared.margin.lo;
    track.hi[column][step] = compared.margin.hi;
  }
  Absence absence;
  for (const auto& side : node.children) MarkAbsent(*side, scope, absence);
  for (std::size_t step = 0; step < absence.left_out.size(); ++step) {
    if (absence.left_out[step] == 0) continue;
    track.truth[step] = kMaybe;  // whatever the rest would say
    track.lo[column][step] = -kInfinity;
    track.hi[column][step] = kInfinity;
  }
  track.open = std::move(absence.left_out);
  track.lacking = std::move(absence.lacking);
  return track;
}

void Evaluator::MarkAbsent(const Node& node, const Scope& scope, Absence& absence) const {
  if (node.kind == Kind::kAggregate || node.kind == Kind::kOverlap) return;
  if ((node.kind == Kind::kSpread || node.kind == Kind::kTotal) && !scope.in_ranks) {
    const std::vector<int> worlds = context_.WorldsOf(node);
    Scope at_rank = scope;
    at_rank.in_ranks = true;
    for (at_rank.rank = 0; at_rank.rank < context_.self().world_size; ++at_rank.rank) {
      Absence of_rank;
      MarkAbsent(node.child(0), at_rank, of_rank);
      for (std::size_t step = 0; step < of_rank.lacking.size(); ++step) {
        if (IsOutside(at_rank.rank, worlds, step, /*at_steps=*/true)) continue;
        absence.left_out.resize(of_rank.lacking.size());
        absence.lacking.resize(of_rank.lacking.size());
        absence.left_out[step] |= of_rank.left_out[step];
        absence.lacking[step] |= of_rank.lacking[step];
      }
    }
    return;
  }
  if (node.kind == Kind::kDistance && node.child(0).kind == Kind::kSignal) {
    return MarkAbsentInBoth(node.child(0), scope, absence);
  }
  if (node.kind == Kind::kRounding) return;  // is known where control is
  for (const auto& child : node.children) MarkAbsent(*child, scope, absence);
  if (node.kind != Kind::kSignal || node.slice.given) return;
  const Samples samples = context_.SamplesOf(node, scope);
  if (!samples.sparse) return;
  absence.left_out.resize(context_.steps());
  absence.lacking.resize(context_.steps());
  for (int step = 0; step < context_.steps(); ++step) {
    absence.left_out[step] |= samples.IsLeftOut(step);
    absence.lacking[step] |= samples.At(step) != SampleState::kPresent;
  }
}

// A step that only one of the two recorded is a difference.
void Evaluator::MarkAbsentInBoth(const Node& signal, const Scope& scope, Absence& absence) const {
  const Samples own = context_.SamplesOf(signal, scope);
  const Samples control = context_.ControlSamplesOf(signal, scope);
  if (!own.sparse) return;
  absence.left_out.resize(context_.steps());
  absence.lacking.resize(context_.steps());
  for (int step = 0; step < context_.steps(); ++step) {
    absence.left_out[step] |= own.IsLeftOut(step) && control.IsLeftOut(step);
    absence.lacking[step] |=
        own.At(step) != SampleState::kPresent && control.At(step) != SampleState::kPresent;
  }
}

Track Evaluator::DetectorAtSteps(const Node& node, const Scope& scope) const {
  if (node.child(0).kind != Kind::kSignal) {
    return Constant(UnknownOf(node, context_.target()), context_.steps());
  }
  Track track = Detect(node, context_.SamplesOf(node.child(0), scope), context_.steps());
  Absence absence;
  if (node.detector->judges_each_sample) MarkAbsent(node.child(0), scope, absence);
  track.open = std::move(absence.left_out);
  track.lacking = std::move(absence.lacking);
  return track;
}

Track Evaluator::EventAtSteps(const Node& node, const Scope& scope) const {
  Value absent;
  absent.truth = context_.EventsMayGrow(node) ? kMaybe : kNo;
  Track track = Constant(absent, context_.steps());
  for (const Event* event : context_.EventsOf(node, scope)) {
    if (track.size() > 0) track.truth[context_.StepOf(*event)] = kYes;
  }
  return track;
}

}  // namespace trainwreck::formula
