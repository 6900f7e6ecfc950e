// The conclusions of a learning-rate range test (Smith 2017). From the final losses at each rate:
// the rates that learn, the highest stable rate, and a rate to use.
#pragma once

#include <optional>
#include <vector>

namespace trainwreck {

// One rate, over its seeds.
struct RatePoint {
  double rate = 0;
  double start = 0;       // median loss of the first steps
  double end = 0;         // median loss of the last steps; infinite: not finite in some seed
  bool diverged = false;  // in some seed the loss was not finite, or the run died
};

struct LrRange {
  int best = -1;      // index of the lowest end; -1: no rate learns
  int steepest = -1;  // where the end falls most from the rate before
  // The rates around the best that reach nine tenths of its fall: any of them will do.
  int plateau_from = -1, plateau_to = -1;
  int largest_stable = -1;  // the last from the best on with half of its fall or more
  double suggested = 0;     // the geometric mean of the plateau's ends
};

enum class RateVerdict { kGood, kTooLow, kTooHigh, kDiverges };

// `points` by rate, rising.
LrRange FindRange(const std::vector<RatePoint>& points);

// Where a rate lies; empty when no rate learns.
std::optional<RateVerdict> Judge(const std::vector<RatePoint>& points, const LrRange& range,
                                 double rate);

}  // namespace trainwreck
