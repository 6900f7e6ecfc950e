// Version 2: four words at once. There is no multiplication of 64-bit words; three of 32-bit halves
// make one.
#include "kernels/digest_mix.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#define AVX2_TARGET __attribute__((target("avx2")))

namespace trainwreck::kernels {
namespace {

AVX2_TARGET inline __m256i FoldHigh(__m256i x) {
  return _mm256_xor_si256(x, _mm256_srli_epi64(x, 32));
}

AVX2_TARGET inline __m256i TimesMultiplier(__m256i x) {
  const __m256i low = _mm256_set1_epi64x(kDigestMultiplier & 0xffffffff);
  const __m256i high = _mm256_set1_epi64x(kDigestMultiplier >> 32);
  const __m256i cross =
      _mm256_add_epi64(_mm256_mul_epu32(x, high), _mm256_mul_epu32(_mm256_srli_epi64(x, 32), low));
  return _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64(cross, 32));
}

AVX2_TARGET inline __m256i Mix(__m256i x) {
  return FoldHigh(TimesMultiplier(FoldHigh(TimesMultiplier(FoldHigh(x)))));
}

AVX2_TARGET std::uint64_t Terms(const void* data, std::int64_t words, std::uint64_t first) {
  const char* at = static_cast<const char*>(data);
  const std::uint64_t start = first * kDigestStep;
  __m256i key = _mm256_set_epi64x(start + 3 * kDigestStep, start + 2 * kDigestStep,
                                  start + kDigestStep, start);
  const __m256i step4 = _mm256_set1_epi64x(4 * kDigestStep);
  const __m256i step8 = _mm256_set1_epi64x(8 * kDigestStep);
  __m256i sum0 = _mm256_setzero_si256();
  __m256i sum1 = _mm256_setzero_si256();
  std::int64_t i = 0;
  for (; i + 8 <= words; i += 8, at += 64) {
    const __m256i word0 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i word1 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32));
    sum0 = _mm256_add_epi64(sum0, Mix(_mm256_add_epi64(word0, key)));
    sum1 = _mm256_add_epi64(sum1, Mix(_mm256_add_epi64(word1, _mm256_add_epi64(key, step4))));
    key = _mm256_add_epi64(key, step8);
  }
  alignas(32) std::uint64_t sums[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(sums), _mm256_add_epi64(sum0, sum1));
  std::uint64_t total = sums[0] + sums[1] + sums[2] + sums[3];
  for (; i < words; ++i, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    total += DigestTerm(word, first + static_cast<std::uint64_t>(i));
  }
  return total;
}

}  // namespace

DigestFunction Avx2Digest() { return Terms; }

}  // namespace trainwreck::kernels

#else

namespace trainwreck::kernels {
DigestFunction Avx2Digest() { return nullptr; }
}  // namespace trainwreck::kernels

#endif
