#include "harness/checkup/lr_curve.h"

#include <algorithm>
#include <cmath>

namespace trainwreck {
namespace {

// A rate learns when it takes a tenth off the loss that runs begin with.
constexpr double kLearns = 0.9;
constexpr double kPlateau = 0.9;  // of the best fall
constexpr double kStable = 0.5;

double FallOf(const RatePoint& point) { return point.diverged ? -1 : point.start - point.end; }

}  // namespace

LrRange FindRange(const std::vector<RatePoint>& points) {
  LrRange range;
  const int count = static_cast<int>(points.size());
  for (int i = 0; i < count; ++i) {
    if (points[i].diverged || points[i].end > kLearns * points[i].start) continue;
    if (range.best < 0 || points[i].end < points[range.best].end) range.best = i;
  }
  if (range.best < 0) return range;
  const double fall = FallOf(points[range.best]);
  const auto keeps = [&](int i, double share) { return FallOf(points[i]) >= share * fall; };
  range.plateau_from = range.plateau_to = range.largest_stable = range.best;
  while (range.plateau_from > 0 && keeps(range.plateau_from - 1, kPlateau)) --range.plateau_from;
  while (range.plateau_to + 1 < count && keeps(range.plateau_to + 1, kPlateau)) ++range.plateau_to;
  while (range.largest_stable + 1 < count && keeps(range.largest_stable + 1, kStable)) {
    ++range.largest_stable;
  }
  double most = 0;
  for (int i = 1; i <= range.best; ++i) {
    if (points[i].diverged || points[i - 1].diverged) continue;
    const double drop = points[i - 1].end - points[i].end;
    if (drop > most) {
      most = drop;
      range.steepest = i;
    }
  }
  range.suggested = std::sqrt(points[range.plateau_from].rate * points[range.plateau_to].rate);
  return range;
}

std::optional<RateVerdict> Judge(const std::vector<RatePoint>& points, const LrRange& range,
                                 double rate) {
  if (range.best < 0) return std::nullopt;
  constexpr double kSlack = 1 + 1e-9;  // a rate of the grid is inside, however it was computed
  if (rate * kSlack < points[range.plateau_from].rate) return RateVerdict::kTooLow;
  if (rate <= points[range.plateau_to].rate * kSlack) return RateVerdict::kGood;
  const auto next = std::find_if(points.begin(), points.end(), [&](const RatePoint& point) {
    return point.rate * kSlack >= rate;
  });
  const bool diverges = next != points.end() ? next->diverged : points.back().diverged;
  return diverges ? RateVerdict::kDiverges : RateVerdict::kTooHigh;
}

}  // namespace trainwreck
