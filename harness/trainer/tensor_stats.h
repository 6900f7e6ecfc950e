// One pass over a tensor's values, for telemetry and clipping. Sums are in double, in a fixed order
// of 16 lanes, so they neither overflow where a float sum would nor differ from run to run.
#pragma once

#include <cstdint>

namespace trainwreck {

double SumSquares(const float* values, std::int64_t count);

std::int64_t CountNonfinite(const float* values, std::int64_t count);

struct ChangeStats {
  double now_squares = 0;     // sum of now^2
  double change_squares = 0;  // sum of (now - before)^2
  std::int64_t changed = 0;   // elements whose bits differ
};
ChangeStats CompareTensors(const float* now, const float* before, std::int64_t count);

}  // namespace trainwreck
