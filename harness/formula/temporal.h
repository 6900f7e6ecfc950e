// Tracks over moving windows: what the temporal operators are made of.
#pragma once

#include <vector>

#include "harness/formula/node.h"
#include "harness/formula/sliding.h"
#include "harness/formula/value.h"

namespace trainwreck::formula {

// For each window the best (`largest`) or worst value of the track inside it. Places before the
// first and after the last step read as `before` and `after`, empty windows as `after`.
Track Extreme(const Track& track, const Windows& windows, bool largest, Tri before, Tri after);

// The largest value in each window of those at its steps that are not open. A window with no step
// where all sparse signals have a sample has nothing to leave out: there, open is unknown.
Track ExtremeOfSampled(const Track& track, const Windows& windows, Tri before, Tri after);

// As one window sees the track: its open steps hold nothing, where it has a step with all samples.
Track SeenThrough(Track track, int from, int to);

// [t + from, t + to] for each step t; without an end, to the last step.
Windows StepWindows(const Window& window, int steps);

// [t - to, t - from], cut at the run's first step.
Windows PastWindows(const Window& window, int steps);

// `p until[window] q` at each step, window in steps.
Track Until(const Track& p, const Track& q, const Window& window);

// For each place of q: the first q from there on has a p in its window (of indices into p). `after`
// is what may come after q's last place.
Track Precedes(const Track& p, const Track& q, const Windows& windows, Tri p_elsewhere, Tri after);

// Truth at moments, in order; more may come that are not known, none of them before `open_from`.
struct Moments {
  std::vector<double> times;
  Track track;
  double open_from = kInfinity;
};
Moments AtIndices(Track track);  // a time for each step: its index

// How long before the end of [from, to] it first holds; negative: how long after.
Interval FirstHoldMargin(const Moments& moments, double from, double to);

// How well inside [from, to] the best lead of p over the first q lies.
Interval LeadMargin(const Moments& p, const Moments& q, double from, double to);

}  // namespace trainwreck::formula
