#include "harness/picture/curve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace trainwreck {
namespace {

bool IsSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Curve WithoutRepeats(const Series& series) {
  Curve all;
  for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
    if (!series.Has(step)) continue;
    const std::size_t size = all.values.size();
    const double value = series.values[step];
    const bool repeats =
        size >= 2 && IsSame(all.values[size - 1], value) && IsSame(all.values[size - 2], value);
    if (repeats) {
      all.steps.back() = step;
    } else {
      all.steps.push_back(step);
      all.values.push_back(value);
    }
  }
  return all;
}

// The indices of what stays of one span.
class Span {
 public:
  void Add(std::size_t index, double value) {
    if (std::isfinite(value)) {
      if (least_ < 0 || value < least_value_) Take(least_, least_value_, index, value);
      if (most_ < 0 || value > most_value_) Take(most_, most_value_, index, value);
    } else {
      if (first_lost_ < 0) first_lost_ = static_cast<std::ptrdiff_t>(index);
      last_lost_ = static_cast<std::ptrdiff_t>(index);
    }
  }
  void MoveTo(std::set<std::size_t>& kept) {
    for (std::ptrdiff_t index : {least_, most_, first_lost_, last_lost_}) {
      if (index >= 0) kept.insert(static_cast<std::size_t>(index));
    }
    *this = Span();
  }

 private:
  static void Take(std::ptrdiff_t& place, double& held, std::size_t index, double value) {
    place = static_cast<std::ptrdiff_t>(index);
    held = value;
  }
  std::ptrdiff_t least_ = -1, most_ = -1, first_lost_ = -1, last_lost_ = -1;
  double least_value_ = 0, most_value_ = 0;
};

bool IsEveryStep(const Curve& curve) {
  return curve.steps.empty() ||
         curve.steps.back() - curve.steps.front() + 1 == static_cast<int>(curve.steps.size());
}

}  // namespace

Curve Thinned(const Series& series, int points) {
  Curve all = WithoutRepeats(series);
  if (static_cast<int>(all.steps.size()) <= points) return all;
  const int spans = std::max(points / 4, 1);
  const std::int64_t first = all.steps.front();
  const std::int64_t length = all.steps.back() - first + 1;
  std::set<std::size_t> kept = {0, all.steps.size() - 1};
  Span span;
  std::int64_t current = 0;
  for (std::size_t i = 0; i < all.steps.size(); ++i) {
    const std::int64_t index = (all.steps[i] - first) * spans / length;
    if (index != current) span.MoveTo(kept);
    current = index;
    span.Add(i, all.values[i]);
  }
  span.MoveTo(kept);
  Curve thin;
  for (std::size_t index : kept) {
    thin.steps.push_back(all.steps[index]);
    thin.values.push_back(all.values[index]);
  }
  return thin;
}

double Rounded(double value) {
  if (!std::isfinite(value) || (value == std::trunc(value) && std::fabs(value) < 1e9)) return value;
  char text[40];
  std::snprintf(text, sizeof text, "%.5g", value);
  return std::strtod(text, nullptr);
}

Json ToJson(const Curve& curve) {
  Json gaps = Json::array(), values = Json::array();
  if (!IsEveryStep(curve)) {
    for (std::size_t i = 1; i < curve.steps.size(); ++i) {
      gaps.push_back(curve.steps[i] - curve.steps[i - 1]);
    }
  }
  for (double value : curve.values) {
    const double rounded = Rounded(value);
    const bool is_whole = rounded == std::trunc(rounded) && std::fabs(rounded) < 1e9;
    // "3", not "3.0"
    values.push_back(is_whole ? Json(static_cast<std::int64_t>(rounded)) : EncodeNumber(rounded));
  }
  return {curve.steps.empty() ? 0 : curve.steps.front(), std::move(gaps), std::move(values)};
}

std::size_t BytesOf(const Curve& curve) {
  constexpr std::size_t kFrame = 16, kGap = 2, kShort = 2, kNumber = 8;
  std::size_t bytes = kFrame;
  for (double value : curve.values) {
    bytes += value == std::trunc(value) && std::fabs(value) < 10 ? kShort : kNumber;
  }
  return bytes + (IsEveryStep(curve) ? 0 : kGap * curve.steps.size());
}

}  // namespace trainwreck
