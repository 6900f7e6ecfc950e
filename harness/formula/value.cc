#include "harness/formula/value.h"

#include <algorithm>
#include <utility>

namespace trainwreck::formula {
namespace {

Interval Hull(std::initializer_list<double> ends) {
  Interval hull{kInfinity, -kInfinity};
  for (double end : ends) {
    if (std::isnan(end)) return kAll;
    hull = {std::min(hull.lo, end), std::max(hull.hi, end)};
  }
  return hull;
}

// `worst` and `best` are the margin's ends. Between points inf - inf is no distance; else an
// infinite end stands for "anything", and so does the margin's.
Interval MarginBetween(double worst, double best, bool points) {
  if (std::isnan(worst)) worst = points ? 0 : -kInfinity;
  if (std::isnan(best)) best = points ? 0 : kInfinity;
  return {worst, best};
}

// left < right, or left <= right.
Compared Less(const Interval& left, const Interval& right, bool strict, bool octaves) {
  const bool points = IsPoint(left) && IsPoint(right);
  Compared result;
  // An infinite end of an interval is no value that was seen: it decides nothing.
  const bool ends_known =
      (IsPoint(left) || left.hi < kInfinity) && (IsPoint(right) || right.lo > -kInfinity);
  const bool other_ends_known =
      (IsPoint(left) || left.lo > -kInfinity) && (IsPoint(right) || right.hi < kInfinity);
  if (ends_known && (strict ? left.hi < right.lo : left.hi <= right.lo)) {
    result.truth = kYes;
  } else if (other_ends_known && (strict ? left.lo >= right.hi : left.lo > right.hi)) {
    result.truth = kNo;
  }
  if (octaves) {
    auto distance = [](double over, double under) {
      if (std::isinf(over) && over == under) return std::nan("");
      return Octaves(over, under);
    };
    const double worst = distance(right.lo, left.hi);
    const double best = points ? worst : distance(right.hi, left.lo);  // a logarithm is dear
    result.margin = MarginBetween(worst, best, points);
  } else {
    result.margin = MarginBetween(right.lo - left.hi, right.hi - left.lo, points);
  }
  return result;
}

Compared Equal(const Interval& left, const Interval& right) {
  if (IsPoint(left) && IsPoint(right)) {
    const double distance = left.lo == right.lo ? 0 : std::abs(left.lo - right.lo);
    return {left.lo == right.lo ? kYes : kNo, {-distance, -distance}};
  }
  // Apart by at least `gap`, whatever the values turn out to be.
  const double gap = std::max({left.lo - right.hi, right.lo - left.hi, 0.0});
  const bool unbounded = IsAll(left) || IsAll(right) || std::isnan(gap);
  if (unbounded) return {kMaybe, {-kInfinity, 0}};
  const double reach = std::max(right.hi - left.lo, left.hi - right.lo);
  return {gap > 0 ? kNo : kMaybe, {std::isnan(reach) ? -kInfinity : -reach, -gap}};
}

// A combination that is unknown is open when all its unknown parts are open.
bool IsOpenOr(Tri truth, bool open) { return truth != kMaybe || open; }

Value Combine(const Value& a, const Value& b, bool least) {
  Value result;
  result.truth = least ? std::min(a.truth, b.truth) : std::max(a.truth, b.truth);
  result.open = result.truth == kMaybe && IsOpenOr(a.truth, a.open) && IsOpenOr(b.truth, b.open);
  result.lacking = a.lacking || b.lacking;
  for (int unit = 0; unit < kUnitCount; ++unit) {
    if (!a.has[unit] && !b.has[unit]) continue;
    const Interval x = a.In(unit), y = b.In(unit);
    result.has[unit] = true;
    result.margins[unit] = least ? Interval{std::min(x.lo, y.lo), std::min(x.hi, y.hi)}
                                 : Interval{std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
  }
  return result;
}

// Before the truths are merged: `merged(step)` will be the truth.
template <typename Merged>
void MergeOpen(Track& track, const Track& other, Merged merged) {
  if (!track.HasOpen() && !other.HasOpen()) return;
  auto at = [](const std::vector<std::uint8_t>& flags, int step) {
    return !flags.empty() && flags[step] != 0;
  };
  std::vector<std::uint8_t> open(track.truth.size()), lacking(track.truth.size());
  for (int step = 0; step < track.size(); ++step) {
    open[step] = merged(step) == kMaybe && IsOpenOr(track.truth[step], at(track.open, step)) &&
                 IsOpenOr(other.truth[step], at(other.open, step));
    lacking[step] = at(track.lacking, step) || at(other.lacking, step);
  }
  track.open = std::move(open);
  track.lacking = std::move(lacking);
}

template <typename Pick>
void Merge(Track& track, Track other, Pick pick) {
  MergeOpen(track, other, [&](int step) { return pick(track.truth[step], other.truth[step]); });
  for (int unit : kTrackUnits) {
    if (!track.Has(unit) && !other.Has(unit)) continue;
    track.Fill(unit);
    other.Fill(unit);
    for (int step = 0; step < track.size(); ++step) {
      track.lo[unit][step] = pick(track.lo[unit][step], other.lo[unit][step]);
      track.hi[unit][step] = pick(track.hi[unit][step], other.hi[unit][step]);
    }
  }
  for (int step = 0; step < track.size(); ++step) {
    track.truth[step] = pick(track.truth[step], other.truth[step]);
  }
}

}  // namespace

// A NaN end comes from inf - inf and the like: between real infinities the result is a NaN,
// unknown; an infinite end of an interval stands for "anything", unbounded. Both are the widest
// answer.
Interval Add(const Interval& x, const Interval& y) {
  const double lo = x.lo + y.lo, hi = x.hi + y.hi;
  if (IsPoint(x) && IsPoint(y)) return Point(lo);
  return {std::isnan(lo) ? -kInfinity : lo, std::isnan(hi) ? kInfinity : hi};
}

Interval Subtract(const Interval& x, const Interval& y) { return Add(x, Negate(y)); }

Interval Multiply(const Interval& x, const Interval& y) {
  return Hull({x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi});
}

Interval Divide(const Interval& x, const Interval& y) {
  if (IsPoint(x) && IsPoint(y)) return Point(x.lo / y.lo);
  if (y.lo <= 0 && y.hi >= 0) return kAll;
  return Hull({x.lo / y.lo, x.lo / y.hi, x.hi / y.lo, x.hi / y.hi});
}

Interval Abs(const Interval& x) {
  if (x.lo >= 0) return x;
  if (x.hi <= 0) return Negate(x);
  return {0, std::max(-x.lo, x.hi)};
}

Interval Log(const Interval& x) {
  if (x.hi <= 0) return kAll;
  return {x.lo > 0 ? std::log(x.lo) : -kInfinity, std::log(x.hi)};
}

Interval Sqrt(const Interval& x) {
  if (x.hi < 0) return kAll;
  return {x.lo > 0 ? std::sqrt(x.lo) : 0, std::sqrt(x.hi)};
}

Interval Cos(const Interval& x) {
  if (IsPoint(x) && std::isfinite(x.lo)) return Point(std::cos(x.lo));
  return {-1, 1};
}

double Octaves(double over, double under) {
  if (over == under) return 0;
  if (over < 0 || under < 0) return over > under ? kInfinity : -kInfinity;
  if (under == 0 || std::isinf(over)) return kInfinity;
  if (over == 0 || std::isinf(under)) return -kInfinity;
  const double ratio = over / under;
  if (std::isnormal(ratio)) return std::log2(ratio);
  return std::log2(over) - std::log2(under);
}

Compared Compare(CompareOp op, const Interval& left, const Interval& right, bool octaves) {
  switch (op) {
    case CompareOp::kLess:
      return Less(left, right, true, octaves);
    case CompareOp::kLessEqual:
      return Less(left, right, false, octaves);
    case CompareOp::kGreater:
      return Less(right, left, true, octaves);
    case CompareOp::kGreaterEqual:
      return Less(right, left, false, octaves);
    case CompareOp::kEqual:
      return Equal(left, right);
    case CompareOp::kNotEqual: {
      const Compared equal = Equal(left, right);
      return {static_cast<Tri>(-equal.truth), Negate(equal.margin)};
    }
  }
  return {};
}

Value Not(Value value) {
  value.truth = static_cast<Tri>(-value.truth);
  for (Interval& margin : value.margins) margin = Negate(margin);
  return value;
}

Value And(const Value& a, const Value& b) { return Combine(a, b, true); }
Value Or(const Value& a, const Value& b) { return Combine(a, b, false); }

Value Track::At(int step) const {
  Value value;
  value.truth = truth[step];
  value.open = HasOpen() && open[step] != 0;
  value.lacking = HasOpen() && lacking[step] != 0;
  for (int unit : kTrackUnits) {
    if (!Has(unit)) continue;
    value.has[unit] = true;
    value.margins[unit] = {lo[unit][step], hi[unit][step]};
  }
  return value;
}

void Track::Fill(int unit) {
  if (Has(unit)) return;
  lo[unit].resize(truth.size());
  hi[unit].resize(truth.size());
  for (int step = 0; step < size(); ++step) {
    const Interval margin = MarginOf(truth[step]);
    lo[unit][step] = margin.lo;
    hi[unit][step] = margin.hi;
  }
}

Track Constant(const Value& value, int size) {
  Track track;
  track.truth.assign(size, value.truth);
  for (int unit : kTrackUnits) {
    if (!value.has[unit]) continue;
    track.lo[unit].assign(size, value.margins[unit].lo);
    track.hi[unit].assign(size, value.margins[unit].hi);
  }
  return track;
}

void Invert(Track& track) {
  for (Tri& truth : track.truth) truth = static_cast<Tri>(-truth);
  for (int unit : kTrackUnits) {
    std::swap(track.lo[unit], track.hi[unit]);
    for (double& margin : track.lo[unit]) margin = -margin;
    for (double& margin : track.hi[unit]) margin = -margin;
  }
}

void AndInto(Track& track, Track other) {
  Merge(track, std::move(other), [](auto a, auto b) { return std::min(a, b); });
}

void OrInto(Track& track, Track other) {
  Merge(track, std::move(other), [](auto a, auto b) { return std::max(a, b); });
}

}  // namespace trainwreck::formula
