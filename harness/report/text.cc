#include "harness/report/text.h"

#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "harness/report/console.h"

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
    const bool control =
        (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0);
    if (control) {
      char escaped[16];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(code));
      clean += escaped;
    } else {
      clean.append(text, at, length);
    }
    at += length;
  }
  return clean;
}

std::string FormatNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string FormatSeconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, seconds < 10 ? "%.2f" : "%.1f", seconds);
  return text;
}

std::string FailureHeading(const CheckResult& check) {
  std::string place = check.file;
  if (check.position.line > 0) {
    place +=
        ":" + std::to_string(check.position.line) + ":" + std::to_string(check.position.column);
  }
  if (!place.empty()) place += ": ";
  return place + check.failure_class + ": '" + check.check + "' in " + check.arm;
}

std::vector<std::pair<std::string, std::string>> FailureLines(const CheckResult& check) {
  std::vector<std::pair<std::string, std::string>> lines;
  auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) lines.emplace_back(label, text);
  };
  add("formula", check.formula);
  add("claim", check.message);
  add("seen", check.seen);
  if (check.worst_margin) add("margin", FormatMargin(*check.worst_margin, check.unit));
  add("evidence", check.evidence);
  add("repeat", check.rerun_command);
  return lines;
}

std::string NoteLine(const Note& note) {
  std::string line = "note: " + note.arm + " seed " + std::to_string(note.seed);
  if (note.step >= 0) line += ", step " + std::to_string(note.step);
  if (note.seeds > 1) {
    line +=
        " (and " + std::to_string(note.seeds - 1) + " more seed" + (note.seeds > 2 ? "s)" : ")");
  }
  return line + ": " + note.text;
}

std::string UpperCase(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string EscapeMarkdown(const std::string& text) {
  std::string escaped;
  for (char c : CleanText(text)) {
    switch (c) {
      case '\n':
        escaped += ' ';
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '|':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '\\':
      case '#':
        escaped += '\\';
        escaped += c;
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace trainwreck
