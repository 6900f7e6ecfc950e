#include "harness/text/clean_text.h"

#include <cstdint>
#include <cstdio>

namespace trainwreck {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

// Bytes of the well-formed UTF-8 sequence at `at`, 0 when it is broken; its code point in `code`.
int SequenceLength(const std::string& text, std::size_t at, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(at);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const int length = first >= 0xF0 && first < 0xF5   ? 4
                     : first >= 0xE0 && first < 0xF0 ? 3
                     : first >= 0xC2 && first < 0xE0 ? 2
                                                     : 0;
  if (length == 0 || at + length > text.size()) return 0;
  code = first & (0x7F >> length);
  for (int i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    code = (code << 6) | (byte(at + i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

}  // namespace

std::string CleanText(const std::string& text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::uint32_t code = 0;
    const int length = SequenceLength(text, at, code);
    if (length == 0 || code == 0xFFFE || code == 0xFFFF) {
      clean += kReplacement;
      at += length == 0 ? 1 : length;
      continue;
    }
    const bool turns_text = (code >= 0x202A && code < 0x202F) || (code >= 0x2066 && code < 0x206A);
    const bool control = (code < 0x20 && code != '\n' && code != '\t') ||
                         (code >= 0x7F && code < 0xA0) || turns_text;
    if (control) {
      char escaped[16];
      std::snprintf(escaped, sizeof escaped, code < 0x20 ? "\\x%02x" : "\\u%04x",
                    static_cast<unsigned>(code));
      clean += escaped;
    } else {
      clean.append(text, at, length);
    }
    at += length;
  }
  return clean;
}

}  // namespace trainwreck
