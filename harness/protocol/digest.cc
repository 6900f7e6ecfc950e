#include "harness/protocol/digest.h"

#include <array>

namespace trainwreck {

std::uint64_t Digest(std::string_view bytes, std::uint64_t seed) {
  constexpr std::uint64_t kOffset = 14695981039346656037ULL;
  constexpr std::uint64_t kPrime = 1099511628211ULL;
  std::uint64_t hash = kOffset ^ seed;
  for (unsigned char byte : bytes) {
    hash ^= byte;
    hash *= kPrime;
  }
  // FNV alone mixes its high bits badly; the finalizer is that of SplitMix64 (Steele et al. 2014).
  hash ^= hash >> 30;
  hash *= 0xbf58476d1ce4e5b9ULL;
  hash ^= hash >> 27;
  hash *= 0x94d049bb133111ebULL;
  return hash ^ (hash >> 31);
}

std::string DigestText(std::string_view bytes) {
  std::uint64_t digest = Digest(bytes);
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, digest >>= 4) text[i] = "0123456789abcdef"[digest & 15];
  return text;
}

}  // namespace trainwreck
