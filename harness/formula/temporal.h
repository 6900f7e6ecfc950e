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

// The largest value in each window over its steps that are not open. Where a window has no step
// with samples of all sparse signals, its open steps count as unknown.
Track ExtremeOfSampled(const Track& track, const Windows& windows, Tri before, Tri after);

// The track as one window sees it: open steps count as no value, if the window has a step with all
// samples.
Track SeenThrough(Track track, int from, int to);

// The windows [t + from, t + to] for each step t.
Windows MovingWindows(int from, int to, int steps);

// `window` moved to each step; without an end, to the last step.
Windows StepWindows(const Window& window, int steps);

// The windows [t - to, t - from] for each step t, cut at the run's first step.
Windows PastWindows(const Window& window, int steps);

// `p until[window] q` at each step, window in steps.
Track Until(const Track& p, const Track& q, const Window& window);

// For each place of q: whether the first q from there on has a p in its window (of indices into p).
// `after` is the value after q's last place.
Track Precedes(const Track& p, const Track& q, const Windows& windows, Tri p_elsewhere, Tri after);

// Truth at moments, in the order of time. More moments may come that are not known yet, but none
// before `open_from`.
struct Moments {
  std::vector<double> times;
  Track track;
  double open_from = kInfinity;
};
Moments AtIndices(Track track);  // a time for each step: its index

// How long before the end of [from, to] the moments first hold; negative: how long after.
Interval FirstHoldMargin(const Moments& moments, double from, double to);

// How well inside [from, to] the best lead of p over the first q lies.
Interval LeadMargin(const Moments& p, const Moments& q, double from, double to);

}  // namespace trainwreck::formula
