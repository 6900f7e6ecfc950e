// Version 3: the lanes of version 2 as four registers of four doubles, with counts and maximum as
// integers of 8 elements; float16 is widened by the processor.
#include "kernels/tensor_stats_order.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#define AVX2 __attribute__((target("avx2,fma,f16c"))) inline

namespace trainwreck::kernels {
namespace {

// Each loads 8 elements as float32.
struct Float32 {
  static constexpr int kBytes = 4;
  AVX2 static __m256 Load(const char* at) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  }
};
struct Float16 {
  static constexpr int kBytes = 2;
  AVX2 static __m256 Load(const char* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
};
struct BFloat16 {
  static constexpr int kBytes = 2;
  AVX2 static __m256 Load(const char* at) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

struct Lanes {
  __m256d sum[4];
  __m256d squares[4];
  __m256i max_bits;
  __m256i minus_zeros;
  __m256i minus_finite;
};

template <int kHalf>
AVX2 void AddHalfRow(__m256 value, Lanes& lanes) {
  const __m256i magnitude =
      _mm256_and_si256(_mm256_castps_si256(value), _mm256_set1_epi32(0x7fffffff));
  const __m256i finite = _mm256_cmpgt_epi32(_mm256_set1_epi32(kInfinityBits), magnitude);
  const __m256 x = _mm256_and_ps(value, _mm256_castsi256_ps(finite));
  lanes.max_bits = _mm256_max_epi32(lanes.max_bits, _mm256_and_si256(magnitude, finite));
  lanes.minus_zeros =
      _mm256_add_epi32(lanes.minus_zeros, _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256()));
  lanes.minus_finite = _mm256_add_epi32(lanes.minus_finite, finite);
  const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
  const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
  constexpr int kFirst = 2 * kHalf;
  lanes.sum[kFirst] = _mm256_add_pd(lanes.sum[kFirst], low);
  lanes.sum[kFirst + 1] = _mm256_add_pd(lanes.sum[kFirst + 1], high);
  lanes.squares[kFirst] = _mm256_fmadd_pd(low, low, lanes.squares[kFirst]);
  lanes.squares[kFirst + 1] = _mm256_fmadd_pd(high, high, lanes.squares[kFirst + 1]);
}

template <typename Format>
AVX2 void AddRow(const char* row, Lanes& lanes) {
  AddHalfRow<0>(Format::Load(row), lanes);
  AddHalfRow<1>(Format::Load(row + 8 * Format::kBytes), lanes);
}

AVX2 double AddLanes(const __m256d (&lanes)[4]) {
  const __m256d four =
      _mm256_add_pd(_mm256_add_pd(lanes[0], lanes[2]), _mm256_add_pd(lanes[1], lanes[3]));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

AVX2 int AddIntegers(__m256i lanes) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

AVX2 int Largest(__m256i lanes) {
  __m128i most = _mm_max_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1)));
}

template <typename Format>
__attribute__((target("avx2,fma,f16c"))) StripSums Strip(const void* data, int count) {
  constexpr int kRowBytes = kLanes * Format::kBytes;
  const char* row = static_cast<const char*>(data);
  const __m256d none = _mm256_setzero_pd();
  const __m256i zero = _mm256_setzero_si256();
  Lanes lanes = {{none, none, none, none}, {none, none, none, none}, zero, zero, zero};
  const int rows = count / kLanes;
  for (int i = 0; i < rows; ++i, row += kRowBytes) AddRow<Format>(row, lanes);
  const int rest = count % kLanes;
  const int padding = rest == 0 ? 0 : kLanes - rest;
  if (rest > 0) {
    char padded[kRowBytes] = {};
    std::memcpy(padded, row, rest * Format::kBytes);
    AddRow<Format>(padded, lanes);
  }
  StripSums sums;
  sums.sum = AddLanes(lanes.sum);
  sums.squares = AddLanes(lanes.squares);
  sums.max_bits = static_cast<std::uint32_t>(Largest(lanes.max_bits));
  sums.zeros = -AddIntegers(lanes.minus_zeros) - padding;
  sums.nonfinite = count + padding + AddIntegers(lanes.minus_finite);
  return sums;
}

}  // namespace

StripFunctions Avx2Strips() { return {Strip<Float32>, Strip<Float16>, Strip<BFloat16>}; }

}  // namespace trainwreck::kernels

#else

namespace trainwreck::kernels {
StripFunctions Avx2Strips() { return {}; }
}  // namespace trainwreck::kernels

#endif
