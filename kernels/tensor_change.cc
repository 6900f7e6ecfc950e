// CompareTensors: 16 lanes, in the same order with every instruction set, and no fused multiply-add
// (the square of a difference of doubles is inexact, so fusing would change the bits).
#include <bit>

#include "kernels/tensor_stats.h"
#include "kernels/tensor_stats_order.h"

namespace trainwreck::kernels {

#if defined(__x86_64__)
#define FOR_WIDE_AND_PLAIN_CPUS __attribute__((target_clones("avx2", "default")))
#else
#define FOR_WIDE_AND_PLAIN_CPUS
#endif

FOR_WIDE_AND_PLAIN_CPUS ChangeStats CompareTensors(const float* now, const float* before,
                                                   std::int64_t count) {
  double squares[kLanes] = {};
  double changes[kLanes] = {};
  std::int64_t changed[kLanes] = {};
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
  for (int k = 0; i < count; ++i, ++k) {
    const double value = now[i];
    const double change = value - static_cast<double>(before[i]);
    squares[k] += value * value;
    changes[k] += change * change;
    changed[k] += std::bit_cast<std::uint32_t>(now[i]) != std::bit_cast<std::uint32_t>(before[i]);
  }
  AddByHalves(squares, kLanes);
  AddByHalves(changes, kLanes);
  AddByHalves(changed, kLanes);
  return {squares[0], changes[0], changed[0]};
}

}  // namespace trainwreck::kernels
