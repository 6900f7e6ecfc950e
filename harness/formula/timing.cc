#include "harness/formula/timing.h"

#include <algorithm>
#include <utility>

namespace trainwreck::formula {

StepTimes::StepTimes(const RunTrace& run, int rank, int steps) : times(steps), known(steps) {
  auto found = run.time_s.find(rank);
  bool gap = false, inner_gap = false;
  for (int step = 0; step < steps; ++step) {
    known[step] = found != run.time_s.end() && found->second.Has(step) &&
                  !std::isnan(found->second.values[step]);
    if (known[step]) {
      last = std::max(last, found->second.values[step]);
      inner_gap = inner_gap || gap;
    } else {
      gap = true;
    }
    times[step] = last;
  }
  if (gap) open_from = inner_gap ? -kInfinity : last;
}

Moments AtTimes(Track track, const StepTimes& times) {
  Moments moments;
  moments.open_from = times.open_from;
  auto keep = [&](auto& column) {
    std::size_t kept = 0;
    for (std::size_t step = 0; step < column.size(); ++step) {
      if (times.known[step]) column[kept++] = column[step];
    }
    column.resize(kept);
  };
  for (std::size_t step = 0; step < times.times.size(); ++step) {
    if (times.known[step]) moments.times.push_back(times.times[step]);
  }
  keep(track.truth);
  for (int unit : kTrackUnits) {
    keep(track.lo[unit]);
    keep(track.hi[unit]);
  }
  if (track.HasOpen()) {
    keep(track.open);
    keep(track.lacking);
  }
  moments.track = std::move(track);
  return moments;
}

Moments AtEvents(const std::vector<const Event*>& events, bool may_grow) {
  Moments moments;
  for (const Event* event : events) {
    if (!std::isnan(event->time_s)) moments.times.push_back(event->time_s);
  }
  std::sort(moments.times.begin(), moments.times.end());
  moments.track.truth.assign(moments.times.size(), kYes);
  if (may_grow) moments.open_from = -kInfinity;
  return moments;
}

void AddWindow(Windows& windows, const std::vector<double>& times, double from, double to) {
  const auto first = std::lower_bound(times.begin(), times.end(), from);
  const auto last = std::upper_bound(times.begin(), times.end(), to);
  windows.from.push_back(static_cast<int>(first - times.begin()));
  windows.to.push_back(static_cast<int>(last - times.begin()) - 1);
}

Track EventuallySeconds(Track track, const StepTimes& times, const Window& window) {
  const int steps = track.size();
  for (int step = 0; step < steps; ++step) {
    if (times.known[step]) continue;
    track.truth[step] = kMaybe;  // it may or may not be inside a window
    if (track.HasOpen()) {
      track.open[step] = 0;
      track.lacking[step] = 1;
    }
    for (int unit : kTrackUnits) {
      if (!track.Has(unit)) continue;
      track.lo[unit][step] = -kInfinity;
      track.hi[unit][step] = kInfinity;
    }
  }
  const double from = window.from.value_or(0), to = window.to.value_or(kInfinity);
  Windows windows = {std::vector<int>(steps), std::vector<int>(steps)};
  int first = 0, end = 0;  // times do not decrease, so neither end of the window goes back
  for (int step = 0; step < steps; ++step) {
    while (first < steps && times.times[first] < times.times[step] + from) ++first;
    while (end < steps && times.times[end] <= times.times[step] + to) ++end;
    windows.from[step] = first;
    windows.to[step] = end - 1;
  }
  Track result = ExtremeOfSampled(track, windows, kNo, kMaybe);
  for (int step = 0; step < steps; ++step) {
    // A step that has no time has no window; and steps without a time may be in any that reaches
    // there.
    const bool open = times.open_from <= times.times[step] + to;
    if (times.known[step] && !open) continue;
    result.truth[step] = times.known[step] ? std::max(result.truth[step], kMaybe) : kMaybe;
    for (int unit : kTrackUnits) {
      if (!result.Has(unit)) continue;
      result.hi[unit][step] = kInfinity;
      if (!times.known[step]) result.lo[unit][step] = -kInfinity;
    }
  }
  return result;
}

}  // namespace trainwreck::formula
