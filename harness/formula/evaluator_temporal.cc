// The temporal operators of the evaluator. All are made of "eventually": always p is not eventually
// not p, so that the two are dual by construction.
#include <algorithm>
#include <utility>

#include "harness/formula/evaluator.h"
#include "harness/formula/temporal.h"
#include "harness/formula/timing.h"

namespace trainwreck::formula {
namespace {

bool StartsInverted(Kind kind) { return kind == Kind::kAlways || kind == Kind::kHistorically; }
bool EndsInverted(Kind kind) {
  return kind == Kind::kAlways || kind == Kind::kNever || kind == Kind::kHistorically;
}

// Without a lead of its own, "precedes" means strictly before.
double LeadFrom(const Window& window) {
  return window.from.value_or(window.in_seconds ? 0.0 : 1.0);
}

Windows LeadWindows(const Window& window, int steps) {
  const int from = static_cast<int>(std::min<double>(LeadFrom(window), steps));
  const int to = static_cast<int>(std::min<double>(window.to.value_or(steps), steps));
  return MovingWindows(-to, -from, steps);
}

// While it is unknown whether the formula holds, its margin can't rule out either side. (A distance
// in steps may know better: whichever q is the first, a p came before. Kleene's logic does not see
// that.)
Value WithMargin(Value value, Unit unit, Interval margin) {
  if (value.truth == kMaybe) margin = {std::min(margin.lo, 0.0), std::max(margin.hi, 0.0)};
  value.has[static_cast<int>(unit)] = true;
  value.margins[static_cast<int>(unit)] = margin;
  return value;
}

// Without a sample there it is unknown, also for an operator further out.
Value AtLastStep(const Track& track) {
  Value value = track.At(track.size() - 1);
  value.open = value.lacking = false;
  return value;
}

// p until[a:b] q read at step 0: how long before b the first q comes that p reaches.
Interval UntilMargin(const Track& p, const Track& q, double from, double to) {
  if (from >= p.size() || from > to) return kAll;  // the checker rejects it
  Track reached;
  Tri held = kYes;
  for (int step = 0; step < p.size(); ++step) {
    reached.truth.push_back(std::min(held, q.truth[step]));
    held = std::min(held, p.truth[step]);
  }
  Moments moments = AtIndices(std::move(reached));
  if (to >= p.size() && held != kNo) moments.open_from = p.size();
  return FirstHoldMargin(moments, from, to);
}

// Windows in seconds over a whole run count from its beginning; events count by their own time.
// (Not under `always`, which is about the steps without the event, too.)
Moments MomentsOf(const Evaluator& evaluator, const Node& node, bool by_event, const Scope& scope) {
  const Context& context = evaluator.context();
  if (by_event) {
    return AtEvents(context.EventsOf(node, scope), context.EventsMayGrow(node));
  }
  return AtTimes(evaluator.AtSteps(node, scope),
                 StepTimes(context.self(), scope.rank, context.steps()));
}

Value PrecedesInSeconds(const Moments& p, const Moments& q, const Window& window) {
  const double from = LeadFrom(window), to = window.to.value_or(kInfinity);
  const Unit unit = Unit::kSecond;
  const Interval margin = LeadMargin(p, q, from, to);
  const Tri after = q.open_from < kInfinity ? kMaybe : kNo;
  Value value;
  if (q.times.empty()) {
    value.truth = after;
    return WithMargin(value, unit, margin);
  }
  Windows windows;
  for (double time : q.times) AddWindow(windows, p.times, time - to, time - from);
  Track led = p.track;
  // An unknown p may be inside every window: it takes part as one more candidate.
  const bool open = p.open_from < kInfinity;
  led = Extreme(led, windows, true, kNo, open ? kMaybe : kNo);
  if (open) OrInto(led, Constant(Value{}, led.size()));
  Windows own;
  for (int i = 0; i < led.size(); ++i) {
    own.from.push_back(i);
    own.to.push_back(i);
  }
  return WithMargin(Precedes(led, q.track, own, kNo, after).At(0), unit, margin);
}

// `by_event`: none in the window means that it did not happen; no step there means that nobody
// knows.
Value EventuallyInSeconds(Moments moments, const Node& node, bool by_event) {
  if (StartsInverted(node.kind)) Invert(moments.track);
  const double from = node.window.from.value_or(0), to = node.window.to.value_or(kInfinity);
  Windows windows;
  AddWindow(windows, moments.times, from, to);
  moments.track = SeenThrough(std::move(moments.track), windows.from[0], windows.to[0]);
  Value value = Extreme(moments.track, windows, true, kNo, by_event ? kNo : kMaybe).At(0);
  if (moments.open_from <= to) value = Or(value, Value{});
  return WithMargin(value, Unit::kSecond, FirstHoldMargin(moments, from, to));
}

}  // namespace

Value Evaluator::TemporalOverRun(const Node& node, const Scope& scope) const {
  const int steps = context_.steps();
  const Window& window = node.window;
  if (node.kind == Kind::kAtEnd) return AtLastStep(AtSteps(node.child(0), scope));
  if (IsPast(node.kind)) return TemporalAtSteps(node, scope).At(0);  // the checker rejects it
  if (window.in_seconds) {
    if (node.kind == Kind::kUntil) return Value{};  // the checker rejects it
    if (node.kind == Kind::kPrecedes) {
      auto moments = [&](const Node& child) {
        return MomentsOf(*this, child, child.kind == Kind::kEvent, scope);
      };
      return PrecedesInSeconds(moments(node.child(0)), moments(node.child(1)), window);
    }
    const Node& child = node.child(0);
    const bool by_event = child.kind == Kind::kEvent && node.kind != Kind::kAlways;
    const Value value =
        EventuallyInSeconds(MomentsOf(*this, child, by_event, scope), node, by_event);
    return EndsInverted(node.kind) ? Not(value) : value;
  }
  const double from = window.from.value_or(0), to = window.to.value_or(steps - 1);
  Track track = AtSteps(node.child(0), scope);
  if (node.kind == Kind::kPrecedes) {
    const Track second = AtSteps(node.child(1), scope);
    const Value value = Precedes(track, second, LeadWindows(window, steps), kNo, kNo).At(0);
    return WithMargin(value, Unit::kStep,
                      LeadMargin(AtIndices(std::move(track)), AtIndices(second), LeadFrom(window),
                                 window.to.value_or(steps)));
  }
  if (node.kind == Kind::kUntil) {
    const Track second = AtSteps(node.child(1), scope);
    return WithMargin(Until(track, second, window).At(0), Unit::kStep,
                      UntilMargin(track, second, from, to));
  }
  if (StartsInverted(node.kind)) Invert(track);
  const Windows windows = {{static_cast<int>(std::min<double>(from, steps))},
                           {static_cast<int>(std::min<double>(to, steps))}};
  track = SeenThrough(std::move(track), windows.from[0], windows.to[0]);
  Value value = Extreme(track, windows, true, kNo, kMaybe).At(0);
  Moments moments = AtIndices(std::move(track));
  if (to >= steps) moments.open_from = steps;
  const bool outside = from >= steps || from > to;  // the checker rejects it
  value = WithMargin(value, Unit::kStep, outside ? kAll : FirstHoldMargin(moments, from, to));
  return EndsInverted(node.kind) ? Not(value) : value;
}

Track Evaluator::TemporalAtSteps(const Node& node, const Scope& scope) const {
  const int steps = context_.steps();
  if (!IsTemporal(node.kind) || steps == 0) return Constant(Value{}, steps);
  Track track = AtSteps(node.child(0), scope);
  if (node.kind == Kind::kAtEnd) return Constant(AtLastStep(track), steps);
  if (node.kind == Kind::kPrecedes || node.kind == Kind::kUntil) {
    if (node.window.in_seconds) return Constant(Value{}, steps);  // the checker rejects it
    const Track second = AtSteps(node.child(1), scope);
    if (node.kind == Kind::kUntil) return Until(track, second, node.window);
    return Precedes(track, second, LeadWindows(node.window, steps), kNo, kNo);
  }
  if (StartsInverted(node.kind)) Invert(track);
  if (IsPast(node.kind)) {
    if (node.window.in_seconds) return Constant(Value{}, steps);  // the checker rejects it
    track = ExtremeOfSampled(track, PastWindows(node.window, steps), kNo, kMaybe);
  } else if (node.window.in_seconds) {
    const StepTimes times(context_.self(), scope.rank, steps);
    track = EventuallySeconds(std::move(track), times, node.window);
  } else {
    track = ExtremeOfSampled(track, StepWindows(node.window, steps), kNo, kMaybe);
  }
  if (EndsInverted(node.kind)) Invert(track);
  return track;
}

}  // namespace trainwreck::formula
