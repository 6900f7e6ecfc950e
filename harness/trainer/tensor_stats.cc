#include "harness/trainer/tensor_stats.h"

#include <bit>
#include <cmath>

namespace trainwreck {
namespace {

constexpr int kLanes = 16;

double Total(const double (&lanes)[kLanes]) {
  double total = 0;
  for (double lane : lanes) total += lane;
  return total;
}

}  // namespace

// The clones give the same bits: no fused multiply-add, the same order of sums.
#define FOR_WIDE_AND_PLAIN_CPUS __attribute__((target_clones("avx2", "default")))

FOR_WIDE_AND_PLAIN_CPUS double SumSquares(const float* values, std::int64_t count) {
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const double value = values[i + k];
      lanes[k] += value * value;
    }
  }
  for (; i < count; ++i) {
    const double value = values[i];
    lanes[0] += value * value;
  }
  return Total(lanes);
}

FOR_WIDE_AND_PLAIN_CPUS std::int64_t CountNonfinite(const float* values, std::int64_t count) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    total += (std::bit_cast<std::uint32_t>(values[i]) & 0x7f800000u) == 0x7f800000u;
  }
  return total;
}

FOR_WIDE_AND_PLAIN_CPUS ChangeStats CompareTensors(const float* now, const float* before,
                                                   std::int64_t count) {
  double squares[kLanes] = {};
  double changes[kLanes] = {};
  std::int32_t changed[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const double value = now[i + k];
      const double change = value - static_cast<double>(before[i + k]);
      squares[k] += value * value;
      changes[k] += change * change;
      changed[k] +=
          std::bit_cast<std::uint32_t>(now[i + k]) != std::bit_cast<std::uint32_t>(before[i + k]);
    }
  }
  ChangeStats stats;
  for (; i < count; ++i) {
    const double value = now[i];
    const double change = value - static_cast<double>(before[i]);
    squares[0] += value * value;
    changes[0] += change * change;
    changed[0] += std::bit_cast<std::uint32_t>(now[i]) != std::bit_cast<std::uint32_t>(before[i]);
  }
  stats.now_squares = Total(squares);
  stats.change_squares = Total(changes);
  for (std::int32_t lane : changed) stats.changed += lane;
  return stats;
}

}  // namespace trainwreck
