#include "harness/formula/temporal.h"

#include <algorithm>
#include <functional>
#include <type_traits>
#include <utility>

namespace trainwreck::formula {
namespace {

// A truth as the content of a column: of truths, of lower or of upper margins.
enum class Column { kTruth, kLow, kHigh };

template <typename T>
T Lifted(Tri truth, Column column) {
  if constexpr (std::is_same_v<T, Tri>) {
    return truth;
  } else {
    const Interval margin = MarginOf(truth);
    return column == Column::kLow ? margin.lo : margin.hi;
  }
}

// Applies `f(column kind, columns of the operands...)` to every column of tracks of the same units.
template <typename F, typename... Tracks>
Track Columnwise(F f, const Tracks&... tracks) {
  Track result;
  result.truth = f(Column::kTruth, tracks.truth...);
  for (int unit : kTrackUnits) {
    if ((!tracks.Has(unit) || ...)) continue;
    result.lo[unit] = f(Column::kLow, tracks.lo[unit]...);
    result.hi[unit] = f(Column::kHigh, tracks.hi[unit]...);
  }
  return result;
}

int StepBound(double bound, int steps) {
  return static_cast<int>(std::min(bound, static_cast<double>(steps)));
}

// Gives both operands the units of either.
void Align(Track& a, Track& b) {
  for (int unit : kTrackUnits) {
    if (a.Has(unit)) b.Fill(unit);
    if (b.Has(unit)) a.Fill(unit);
  }
}

// Largest min(q(s), p(t..s-1)) over s >= t: the unbounded until, from the back.
template <typename T>
std::vector<T> UntilAnyTime(const std::vector<T>& p, const std::vector<T>& q, T beyond) {
  std::vector<T> result(p.size());
  T later = beyond;
  for (std::size_t t = p.size(); t-- > 0;) {
    later = std::max(q[t], std::min(p[t], later));
    result[t] = later;
  }
  return result;
}

}  // namespace

Track Extreme(const Track& track, const Windows& windows, bool largest, Tri before, Tri after) {
  return Columnwise(
      [&](Column column, const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        const T first = Lifted<T>(before, column), last = Lifted<T>(after, column);
        return largest ? SlidingExtreme(values, windows, first, last, std::greater_equal<T>())
                       : SlidingExtreme(values, windows, first, last, std::less_equal<T>());
      },
      track);
}

namespace {

// What is open is no witness, and what is known beside it still counts: `loss > 5 or eval_loss > 3`
// is as far from true, without a sample of eval_loss, as loss is from 5.
Track WithoutOpen(Track track) {
  for (int step = 0; step < track.size(); ++step) {
    if (track.open[step] == 0) continue;
    track.truth[step] = kNo;
    for (int unit : kTrackUnits) {
      if (track.Has(unit)) track.hi[unit][step] = track.lo[unit][step];
    }
  }
  track.open.clear();
  track.lacking.clear();
  return track;
}

}  // namespace

Track ExtremeOfSampled(const Track& track, const Windows& windows, Tri before, Tri after) {
  Track all = Extreme(track, windows, true, before, after);
  if (!track.HasOpen()) return all;
  const Track sampled = Extreme(WithoutOpen(track), windows, true, before, after);
  std::vector<int> whole(track.truth.size() + 1, 0);  // steps with all samples, below the index
  for (int step = 0; step < track.size(); ++step) {
    whole[step + 1] = whole[step] + (track.lacking[step] == 0 ? 1 : 0);
  }
  for (std::size_t place = 0; place < windows.from.size(); ++place) {
    const int from = std::clamp(windows.from[place], 0, track.size());
    const int to = std::clamp(windows.to[place] + 1, from, track.size());
    if (whole[to] == whole[from]) continue;
    all.truth[place] = sampled.truth[place];
    for (int unit : kTrackUnits) {
      if (!all.Has(unit)) continue;
      all.lo[unit][place] = sampled.lo[unit][place];
      all.hi[unit][place] = sampled.hi[unit][place];
    }
  }
  return all;
}

Track SeenThrough(Track track, int from, int to) {
  if (!track.HasOpen()) return track;
  for (int step = std::max(from, 0); step <= to && step < track.size(); ++step) {
    if (track.lacking[step] == 0) return WithoutOpen(std::move(track));
  }
  return track;
}

Windows MovingWindows(int from, int to, int steps) {
  Windows windows = {std::vector<int>(steps), std::vector<int>(steps)};
  for (int t = 0; t < steps; ++t) {
    windows.from[t] = t + from;
    windows.to[t] = t + to;
  }
  return windows;
}

Windows PastWindows(const Window& window, int steps) {
  const int from = StepBound(window.from.value_or(0), steps);
  const int to = window.to ? StepBound(*window.to, steps) : steps;
  Windows windows = MovingWindows(-to, -from, steps);
  for (int& first : windows.from) first = std::max(first, 0);
  return windows;
}

Windows StepWindows(const Window& window, int steps) {
  const int from = StepBound(window.from.value_or(0), steps);
  const int to = window.to ? StepBound(*window.to, steps) : 0;
  Windows windows = MovingWindows(from, to, steps);
  if (!window.to) windows.to.assign(steps, steps - 1);
  return windows;
}

// p until[a:b] q = eventually[a:b] q, and p up to t + a, and there `p until q` without a bound: of
// the two witnesses of q the earlier one serves. (Donze, Ferrere, Maler: Efficient robust
// monitoring for STL.)
Track Until(const Track& p_given, const Track& q_given, const Window& window) {
  Track p = p_given, q = q_given;
  Align(p, q);
  const int steps = p.size();
  const int from = StepBound(window.from.value_or(0), steps);
  Track result = Extreme(q, StepWindows(window, steps), true, kNo, kMaybe);
  const Tri beyond = window.to ? kMaybe : kNo;  // without an end, none is looked for there
  AndInto(result, Columnwise(
                      [&](Column column, const auto& p_column, const auto& q_column) {
                        using T = typename std::decay_t<decltype(p_column)>::value_type;
                        auto values =
                            UntilAnyTime<T>(p_column, q_column, Lifted<T>(beyond, column));
                        values.erase(values.begin(), values.begin() + from);
                        values.resize(steps, Lifted<T>(kMaybe, column));
                        return values;
                      },
                      p, q));
  if (from > 0) {
    Window head;
    head.to = from - 1;
    AndInto(result, Extreme(p, StepWindows(head, steps), false, kNo, kMaybe));
  }
  return result;
}

Track Precedes(const Track& p_given, const Track& q_given, const Windows& windows, Tri p_elsewhere,
               Tri after) {
  Track q = q_given;
  Track led = Extreme(p_given, windows, true, kNo, p_elsewhere);
  Align(led, q);
  Track not_q = q;
  Invert(not_q);
  return Columnwise(
      [&](Column column, const auto& led_column, const auto& q_column, const auto& not_q_column) {
        using T = typename std::decay_t<decltype(q_column)>::value_type;
        std::vector<T> result(q_column.size());
        T later = Lifted<T>(after, column);
        for (std::size_t t = q_column.size(); t-- > 0;) {
          later = std::max(std::min(q_column[t], led_column[t]), std::min(not_q_column[t], later));
          result[t] = later;
        }
        return result;
      },
      led, q, not_q);
}

Moments AtIndices(Track track) {
  Moments moments;
  moments.times.resize(track.truth.size());
  for (std::size_t i = 0; i < moments.times.size(); ++i) moments.times[i] = static_cast<double>(i);
  moments.track = std::move(track);
  return moments;
}

Interval FirstHoldMargin(const Moments& moments, double from, double to) {
  Interval margin{-kInfinity, -kInfinity};
  for (std::size_t i = 0; i < moments.times.size(); ++i) {
    if (moments.times[i] < from || moments.track.truth[i] == kNo) continue;
    margin.hi = std::max(margin.hi, to - moments.times[i]);
    if (moments.track.truth[i] == kYes) {
      margin.lo = to - moments.times[i];
      return margin;  // any later one is further from the end
    }
  }
  if (moments.open_from < kInfinity) {
    margin.hi = std::max(margin.hi, to - std::max(from, moments.open_from));
  }
  return margin;
}

Interval LeadMargin(const Moments& p, const Moments& q, double from, double to) {
  std::vector<double> sure, possible;
  for (std::size_t i = 0; i < p.times.size(); ++i) {
    if (p.track.truth[i] == kYes) sure.push_back(p.times[i]);
    if (p.track.truth[i] != kNo) possible.push_back(p.times[i]);
  }
  auto best = [&](const std::vector<double>& times, double at) {
    auto margin = [&](double time) { return std::min(at - time - from, to - (at - time)); };
    // The lead nearest to the window's middle; without an end, the longest.
    const double middle = to < kInfinity ? at - (from + to) / 2 : -kInfinity;
    const auto next = std::lower_bound(times.begin(), times.end(), middle);
    double result = -kInfinity;
    if (next != times.end()) result = std::max(result, margin(*next));
    if (next != times.begin()) result = std::max(result, margin(*std::prev(next)));
    return result;
  };
  // Every q that may be the first one counts, until one that is.
  Interval result{kInfinity, -kInfinity};
  for (std::size_t i = 0; i < q.times.size(); ++i) {
    if (q.track.truth[i] == kNo) continue;
    result.lo = std::min(result.lo, best(sure, q.times[i]));
    result.hi =
        std::max(result.hi, p.open_from < kInfinity ? kInfinity : best(possible, q.times[i]));
    if (q.track.truth[i] == kYes) return result;
  }
  return {-kInfinity, q.open_from < kInfinity ? kInfinity : result.hi};
}

}  // namespace trainwreck::formula
