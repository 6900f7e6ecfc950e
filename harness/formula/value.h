// Three-valued truth, intervals, and the value of a subformula at one place (Value) or at every
// step of a run (Track). An unknown number is the interval of all numbers, so a result from a
// shorter trace contains the result from the longer one.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"

namespace trainwreck::formula {

// Kleene's logic: and = min, or = max, not = minus.
using Tri = std::int8_t;
inline constexpr Tri kNo = -1;
inline constexpr Tri kMaybe = 0;
inline constexpr Tri kYes = 1;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Interval kAll = {-kInfinity, kInfinity};

inline Interval Point(double value) { return std::isnan(value) ? kAll : Interval{value, value}; }
inline bool IsPoint(const Interval& x) { return x.lo == x.hi; }
inline bool IsAll(const Interval& x) { return x.lo == -kInfinity && x.hi == kInfinity; }
inline Interval Negate(const Interval& x) { return {-x.hi, -x.lo}; }

Interval Add(const Interval& x, const Interval& y);
Interval Subtract(const Interval& x, const Interval& y);
Interval Multiply(const Interval& x, const Interval& y);
Interval Divide(const Interval& x, const Interval& y);
Interval Abs(const Interval& x);
Interval Log(const Interval& x);  // natural; unknown where x is not positive
Interval Sqrt(const Interval& x);
Interval Cos(const Interval& x);  // x in radians

// The margin that a truth alone gives: plus or minus infinity.
inline Interval MarginOf(Tri truth) {
  if (truth == kMaybe) return kAll;
  return truth == kYes ? Interval{kInfinity, kInfinity} : Interval{-kInfinity, -kInfinity};
}

// The result of a comparison. Its margin is in octaves (log2 of the ratio) or the plain difference.
struct Compared {
  Tri truth = kMaybe;
  Interval margin = kAll;
};
Compared Compare(CompareOp op, const Interval& left, const Interval& right, bool octaves);

// log2(over / under) with its limits: x / 0 is infinite and 0 / 0 is no distance. Where one of the
// two is negative, only their order counts. Grows with `over`, falls with `under`.
double Octaves(double over, double under);

struct Value {
  Tri truth = kMaybe;
  // A sparse signal has no sample at this step. Kleene's logic goes on with it as with unknown
  // (false and open is false); operators that look at many steps leave an open one out.
  bool open = false;
  bool lacking = false;                   // a sparse signal has no sample here, decided or open
  std::array<bool, kUnitCount> has = {};  // which units occur
  std::array<Interval, kUnitCount> margins = {kAll, kAll, kAll, kAll};

  // Its margin in a unit, also in one that it lacks.
  Interval In(int unit) const { return has[unit] ? margins[unit] : MarginOf(truth); }
};

Value Not(Value value);
Value And(const Value& a, const Value& b);
Value Or(const Value& a, const Value& b);

// The units that comparisons have; steps and seconds belong to whole runs only.
inline constexpr int kTrackUnits[] = {static_cast<int>(Unit::kOctave),
                                      static_cast<int>(Unit::kPlain)};

// Every step of a run, column by column.
struct Track {
  std::vector<Tri> truth;
  std::array<std::vector<double>, kUnitCount> lo;  // empty: the unit does not occur
  std::array<std::vector<double>, kUnitCount> hi;
  std::vector<std::uint8_t> open;     // as in Value, by step; empty: nowhere
  std::vector<std::uint8_t> lacking;  // empty exactly when `open` is

  bool HasOpen() const { return !open.empty(); }
  bool Has(int unit) const { return !lo[unit].empty(); }
  int size() const { return static_cast<int>(truth.size()); }
  Value At(int step) const;
  void Fill(int unit);  // gives it a unit that it lacks, by its truth
};

Track Constant(const Value& value, int size);
void Invert(Track& track);                // not
void AndInto(Track& track, Track other);  // track = track and other
void OrInto(Track& track, Track other);

}  // namespace trainwreck::formula
