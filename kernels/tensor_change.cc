// CompareTensors: 16 lanes, the same for every instruction set, and no fused multiply-add: the
// square of a difference of doubles is inexact, so fusing would change the bits (the BUILD file
// turns it off).
#include <bit>

#include "kernels/cpu.h"
#include "kernels/tensor_stats_order.h"
#include "kernels/versions.h"

namespace trainwreck::kernels {
namespace {

// The compiler vectorizes this anew in each function that it is inlined into.
__attribute__((always_inline)) inline ChangeStats Compare(const float* now, const float* before,
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

#if defined(__x86_64__)
__attribute__((target("avx2"))) ChangeStats CompareAvx2(const float* now, const float* before,
                                                        std::int64_t count) {
  return Compare(now, before, count);
}

TRAINWRECK_AVX512 ChangeStats CompareAvx512(const float* now, const float* before,
                                            std::int64_t count) {
  return Compare(now, before, count);
}
#endif

}  // namespace

ChangeStats CompareTensors(const float* now, const float* before, std::int64_t count,
                           InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return CompareAvx512(now, before, count);
  if (set == InstructionSet::kAvx2) return CompareAvx2(now, before, count);
#endif
  return Compare(now, before, count);
}

ChangeStats CompareTensors(const float* now, const float* before, std::int64_t count) {
  return CompareTensors(now, before, count, ChosenInstructionSet());
}

}  // namespace trainwreck::kernels
