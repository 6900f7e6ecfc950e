// The extreme value over a window that moves along a sequence, in linear time whatever the window's
// width.
#pragma once

#include <algorithm>
#include <vector>

namespace trainwreck::formula {

// The windows: place i looks at the indices [from[i], to[i]]. Neither may decrease with i. Indices
// outside the sequence read as `before` and `after`; an empty window (from > to) reads as `after`.
struct Windows {
  std::vector<int> from;
  std::vector<int> to;
};

// The result of SlidingExtreme for a window that does not move, such as a whole run. It needs no
// queue.
template <typename T, typename Wins>
T WindowExtreme(const std::vector<T>& values, int from, int to, T before, T after, Wins wins) {
  const int size = static_cast<int>(values.size());
  if (from > to) return after;
  const int first = std::max(from, 0), last = std::min(to, size - 1);
  if (first > last) return from < 0 && (to < size || wins(before, after)) ? before : after;
  T best = values[first];
  for (int i = first + 1; i <= last; ++i) best = wins(values[i], best) ? values[i] : best;
  if (from < 0 && wins(before, best)) best = before;
  if (to >= size && wins(after, best)) best = after;
  return best;
}

// The largest (Wins = std::greater_equal<T>) or smallest (std::less_equal<T>) value of each window.
// A queue of two stacks: `ending` has the extremes of the older half by their first index, `newer`
// the one of the rest. When the older half is used up, the newer one takes its place; so each value
// is compared twice, whatever the window's width.
template <typename T, typename Wins>
std::vector<T> SlidingExtreme(const std::vector<T>& values, const Windows& windows, T before,
                              T after, Wins wins) {
  const int size = static_cast<int>(values.size());
  const int places = static_cast<int>(windows.from.size());
  std::vector<T> result(places);
  if (places == 1) {
    result[0] = WindowExtreme(values, windows.from[0], windows.to[0], before, after, wins);
    return result;
  }
  auto best = [&](T x, T y) { return wins(x, y) ? x : y; };
  std::vector<T> ending(values.size());  // of [i, middle), for i from the window's first index on
  T newer{};                             // of [middle, next)
  int middle = 0, next = 0;
  for (int place = 0; place < places; ++place) {
    const int from = windows.from[place], to = windows.to[place];
    if (from > to) {
      result[place] = after;
      continue;
    }
    const int first = std::clamp(from, 0, size), end = std::clamp(to + 1, first, size);
    if (first > next) middle = next = first;
    for (; next < end; ++next) newer = next == middle ? values[next] : best(values[next], newer);
    if (first >= middle && first < next) {
      ending[next - 1] = values[next - 1];
      for (int i = next - 2; i >= first; --i) ending[i] = best(values[i], ending[i + 1]);
      middle = next;
    }
    if (first < next) {
      T found = ending[first];
      if (middle < next) found = best(newer, found);
      if (from < 0) found = best(before, found);
      result[place] = to >= size ? best(after, found) : found;
    } else {
      result[place] = from < 0 && (to < size || wins(before, after)) ? before : after;
    }
  }
  return result;
}

}  // namespace trainwreck::formula
