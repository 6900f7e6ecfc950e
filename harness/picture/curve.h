// A signal of one run with fewer points, for charts.
//
//   const Curve curve = Thinned(series, 100);
//   json["loss"] = ToJson(curve);
#pragma once

#include <cstddef>
#include <vector>

#include "harness/protocol/json.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck {

struct Curve {
  std::vector<int> steps;  // rising
  std::vector<double> values;
};

// At most `points` + 2 points, each of which is a sample. The first and the last sample stay. Of
// each of points / 4 equal spans of steps stay the smallest and the largest finite value, and the
// first and the last that is not finite. Samples between two equal ones are left out before, so a
// constant has two points, however long it is.
Curve Thinned(const Series& series, int points);

// [first step, [steps to the next, ..], [values, ..]] with five significant digits; the second is
// empty where every step has a point. Non-finite numbers follow harness/protocol/json.h.
Json ToJson(const Curve& curve);

// About the bytes that ToJson's text will have.
std::size_t BytesOf(const Curve& curve);

// The number with five significant digits; whole numbers stay exact up to 1e9.
double Rounded(double value);

}  // namespace trainwreck
