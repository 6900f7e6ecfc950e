// A 64-bit digest of bytes (FNV-1a with a final mix), the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainwreck {

std::uint64_t Digest(std::string_view bytes, std::uint64_t seed = 0);
std::string DigestText(std::string_view bytes);  // 16 hexadecimal digits

// The low 52 bits: exact as a double, so that a digest can be a signal.
inline double DigestSignal(std::uint64_t digest) {
  return static_cast<double>(digest & ((std::uint64_t{1} << 52) - 1));
}

}  // namespace trainwreck
