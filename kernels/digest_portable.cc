// Version 1: one word after another. Four sums, so that the multiplications of four words overlap.
#include <cstring>

#include "kernels/digest_mix.h"

namespace trainwreck::kernels {
namespace {

std::uint64_t Word(const char* data) {
  std::uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

std::uint64_t Terms(const void* data, std::int64_t words, std::uint64_t first) {
  const char* at = static_cast<const char*>(data);
  std::uint64_t sums[4] = {};
  std::uint64_t key = first * kDigestStep;
  std::int64_t i = 0;
  for (; i + 4 <= words; i += 4, at += 32, key += 4 * kDigestStep) {
    for (std::int64_t k = 0; k < 4; ++k) {
      sums[k] += DigestMix(Word(at + 8 * k) + key + k * kDigestStep);
    }
  }
  for (; i < words; ++i, at += 8, key += kDigestStep) sums[0] += DigestMix(Word(at) + key);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

DigestFunction PortableDigest() { return Terms; }

}  // namespace trainwreck::kernels
