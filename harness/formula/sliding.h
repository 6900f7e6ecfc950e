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
// A monotonic queue: every index enters and leaves once.
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
  std::vector<int> queue(values.size());  // indices whose values are each beaten by those before
  int head = 0, tail = 0, next = 0;
  for (int place = 0; place < places; ++place) {
    const int from = windows.from[place], to = windows.to[place];
    for (; next <= to && next < size; ++next) {
      while (tail > head && wins(values[next], values[queue[tail - 1]])) --tail;
      queue[tail++] = next;
    }
    while (head < tail && queue[head] < from) ++head;
    if (from > to) {
      result[place] = after;
      continue;
    }
    bool any = false;
    T best{};
    auto offer = [&](T value) {
      if (!any || wins(value, best)) best = value;
      any = true;
    };
    if (head < tail) offer(values[queue[head]]);
    if (from < 0) offer(before);
    if (to >= size) offer(after);
    result[place] = any ? best : after;
  }
  return result;
}

}  // namespace trainwreck::formula
