// Version 3: eight words at once, with AVX-512DQ's multiplication of 64-bit words.
#include "kernels/digest_mix.h"

#if defined(__x86_64__)

// GCC 12's own header trips these (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstring>

#define AVX512_TARGET __attribute__((target("avx512f,avx512dq")))

namespace trainwreck::kernels {
namespace {

AVX512_TARGET inline __m512i FoldHigh(__m512i x) {
  return _mm512_xor_si512(x, _mm512_srli_epi64(x, 32));
}

AVX512_TARGET inline __m512i Mix(__m512i x) {
  const __m512i multiplier = _mm512_set1_epi64(static_cast<long long>(kDigestMultiplier));
  x = _mm512_mullo_epi64(FoldHigh(x), multiplier);
  return FoldHigh(_mm512_mullo_epi64(FoldHigh(x), multiplier));
}

AVX512_TARGET std::uint64_t Terms(const void* data, std::int64_t words, std::uint64_t first) {
  const char* at = static_cast<const char*>(data);
  alignas(64) std::uint64_t keys[8];
  for (std::uint64_t k = 0; k < 8; ++k) keys[k] = (first + k) * kDigestStep;
  __m512i key = _mm512_load_si512(keys);
  constexpr std::uint64_t kStep8 = 8 * kDigestStep, kStep16 = 16 * kDigestStep;
  const __m512i step8 = _mm512_set1_epi64(static_cast<long long>(kStep8));
  const __m512i step16 = _mm512_set1_epi64(static_cast<long long>(kStep16));
  __m512i sum0 = _mm512_setzero_si512();
  __m512i sum1 = _mm512_setzero_si512();
  std::int64_t i = 0;
  for (; i + 16 <= words; i += 16, at += 128) {
    const __m512i word0 = _mm512_add_epi64(_mm512_loadu_si512(at), key);
    const __m512i word1 =
        _mm512_add_epi64(_mm512_loadu_si512(at + 64), _mm512_add_epi64(key, step8));
    sum0 = _mm512_add_epi64(sum0, Mix(word0));
    sum1 = _mm512_add_epi64(sum1, Mix(word1));
    key = _mm512_add_epi64(key, step16);
  }
  alignas(64) std::uint64_t sums[8];
  _mm512_store_si512(sums, _mm512_add_epi64(sum0, sum1));
  std::uint64_t total = 0;
  for (std::uint64_t sum : sums) total += sum;
  for (; i < words; ++i, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    total += DigestTerm(word, first + static_cast<std::uint64_t>(i));
  }
  return total;
}

}  // namespace

DigestFunction Avx512Digest() { return Terms; }

}  // namespace trainwreck::kernels

#else

namespace trainwreck::kernels {
DigestFunction Avx512Digest() { return nullptr; }
}  // namespace trainwreck::kernels

#endif
