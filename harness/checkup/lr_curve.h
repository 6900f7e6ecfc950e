// What a learning-rate range test says (Smith 2017): from the loss that runs end with at each rate
// to the rates that learn, the highest that is stable, and one to take.
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
  int steepest = -1;  // the rate by which the end has fallen most since the rate before it
  // The rates around the best that keep nine tenths of its fall: any of them will do.
  int plateau_from = -1, plateau_to = -1;
  int largest_stable = -1;  // the last from the best on that keeps half of the best fall
  double suggested = 0;     // the geometric middle of the plateau
};

enum class RateVerdict { kGood, kTooLow, kTooHigh, kDiverges };

// `points` by rate, rising.
LrRange FindRange(const std::vector<RatePoint>& points);

// Where a rate lies; empty when no rate learns.
std::optional<RateVerdict> Judge(const std::vector<RatePoint>& points, const LrRange& range,
                                 double rate);

}  // namespace trainwreck
