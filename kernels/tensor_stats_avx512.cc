// Version 4: 16 elements in one register; masks take the place of the blends and count through a
// masked addition.
#include "kernels/tensor_stats_order.h"

#if defined(__x86_64__)

// GCC 12's own header trips these (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstring>

#define AVX512_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))
#define AVX512 AVX512_TARGET inline

namespace trainwreck::kernels {
namespace {

// Each loads 16 elements as float32.
struct Float32 {
  static constexpr int kBytes = 4;
  AVX512 static __m512 Load(const char* at) { return _mm512_loadu_ps(at); }
};
struct Float16 {
  static constexpr int kBytes = 2;
  AVX512 static __m512 Load(const char* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
};
struct BFloat16 {
  static constexpr int kBytes = 2;
  AVX512 static __m512 Load(const char* at) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
};

struct Lanes {
  __m512d sum[2];
  __m512d squares[2];
  __m512i max_bits;
  __m512i zeros;
  __m512i finite;
};

template <typename Format>
AVX512 void AddRow(const char* row, Lanes& lanes) {
  const __m512i one = _mm512_set1_epi32(1);
  const __m512i all_but_sign = _mm512_set1_epi32(0x7fffffff);
  const __m512i bits = _mm512_castps_si512(Format::Load(row));
  const __m512i magnitude = _mm512_and_si512(bits, all_but_sign);
  const __mmask16 finite = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(kInfinityBits));
  const __mmask16 zero = _mm512_testn_epi32_mask(bits, all_but_sign);
  const __m512 x = _mm512_castsi512_ps(_mm512_maskz_mov_epi32(finite, bits));
  lanes.max_bits = _mm512_mask_max_epi32(lanes.max_bits, finite, lanes.max_bits, magnitude);
  lanes.zeros = _mm512_mask_add_epi32(lanes.zeros, zero, lanes.zeros, one);
  lanes.finite = _mm512_mask_add_epi32(lanes.finite, finite, lanes.finite, one);
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
  const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
  lanes.sum[0] = _mm512_add_pd(lanes.sum[0], low);
  lanes.sum[1] = _mm512_add_pd(lanes.sum[1], high);
  lanes.squares[0] = _mm512_fmadd_pd(low, low, lanes.squares[0]);
  lanes.squares[1] = _mm512_fmadd_pd(high, high, lanes.squares[1]);
}

AVX512 double AddLanes(const __m512d (&lanes)[2]) {
  const __m512d eight = _mm512_add_pd(lanes[0], lanes[1]);
  const __m256d four =
      _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

template <typename Format>
AVX512_TARGET StripSums Strip(const void* data, int count) {
  constexpr int kRowBytes = kLanes * Format::kBytes;
  const char* row = static_cast<const char*>(data);
  const __m512d none = _mm512_setzero_pd();
  const __m512i nothing = _mm512_setzero_si512();
  Lanes lanes = {{none, none}, {none, none}, nothing, nothing, nothing};
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
  sums.max_bits = static_cast<std::uint32_t>(_mm512_reduce_max_epi32(lanes.max_bits));
  sums.zeros = _mm512_reduce_add_epi32(lanes.zeros) - padding;
  sums.nonfinite = count + padding - _mm512_reduce_add_epi32(lanes.finite);
  return sums;
}

}  // namespace

StripFunctions Avx512Strips() { return {Strip<Float32>, Strip<Float16>, Strip<BFloat16>}; }

}  // namespace trainwreck::kernels

#else

namespace trainwreck::kernels {
StripFunctions Avx512Strips() { return {}; }
}  // namespace trainwreck::kernels

#endif
