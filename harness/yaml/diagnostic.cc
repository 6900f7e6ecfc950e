#include "harness/yaml/diagnostic.h"

#include <algorithm>

#include "harness/text/clean_text.h"
#include "harness/text/nearest.h"

namespace trainwreck {
namespace {

constexpr std::size_t kShownBytes = 140;  // of a source line; longer ones are cut around the caret

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

struct Excerpt {
  std::string text;
  std::size_t begin = 0;  // of the caret, in bytes of `text`
  std::size_t end = 0;
};

// The part of the line to show: at most kShownBytes around the caret, whole characters.
Excerpt Cut(const std::string& line, const Position& position) {
  Excerpt excerpt;
  std::size_t begin = std::min<std::size_t>(std::max(position.column - 1, 0), line.size());
  std::size_t end = std::min<std::size_t>(begin + std::max(position.length, 1), line.size());
  if (line.size() <= kShownBytes) return {line, begin, end};
  std::size_t from = begin > kShownBytes / 2 ? begin - kShownBytes / 2 : 0;
  while (from > 0 && IsContinuation(line[from])) --from;
  std::size_t to = std::min(from + kShownBytes, line.size());
  while (to < line.size() && IsContinuation(line[to])) ++to;
  const std::string before = from > 0 ? "..." : "";
  const std::string after = to < line.size() ? "..." : "";
  excerpt.text = before + line.substr(from, to - from) + after;
  excerpt.begin = begin - from + before.size();
  excerpt.end = std::min(end, to) - from + before.size();
  return excerpt;
}

// As a terminal may be shown it; the caret stays where it was.
Excerpt Cleaned(const Excerpt& excerpt) {
  const std::string before = CleanText(excerpt.text.substr(0, excerpt.begin));
  const std::string marked =
      CleanText(excerpt.text.substr(excerpt.begin, excerpt.end - excerpt.begin));
  return {before + marked + CleanText(excerpt.text.substr(excerpt.end)), before.size(),
          before.size() + marked.size()};
}

// Spaces (tabs where the line has them) up to the caret, then carets, one a character.
std::string CaretLine(const Excerpt& excerpt) {
  std::string line;
  for (std::size_t i = 0; i < excerpt.begin; ++i) {
    if (!IsContinuation(excerpt.text[i])) line += excerpt.text[i] == '\t' ? '\t' : ' ';
  }
  std::size_t width = 0;
  for (std::size_t i = excerpt.begin; i < excerpt.end; ++i) {
    if (!IsContinuation(excerpt.text[i])) ++width;
  }
  line += '^';
  for (std::size_t i = 1; i < width; ++i) line += '~';
  return line;
}

}  // namespace

std::string Format(const Diagnostic& diagnostic, bool color) {
  const char* bold = color ? "\033[1m" : "";
  const char* red = color ? "\033[1;31m" : "";
  const char* green = color ? "\033[1;32m" : "";
  const char* reset = color ? "\033[0m" : "";
  const Position& position = diagnostic.position;

  std::string text = bold + CleanText(diagnostic.file);
  if (position.line > 0) {
    text +=
        ":" + std::to_string(position.line) + ":" + std::to_string(std::max(position.column, 1));
  }
  text +=
      std::string(": ") + reset + red + "error: " + reset + CleanText(diagnostic.message) + "\n";
  if (position.line > 0 && !diagnostic.source_line.empty()) {
    const Excerpt excerpt = Cleaned(Cut(diagnostic.source_line, position));
    std::string number = std::to_string(position.line);
    if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
    text += number + " | " + excerpt.text + "\n";
    text += std::string(number.size(), ' ') + " | " + green + CaretLine(excerpt) + reset + "\n";
  }
  if (!diagnostic.hint.empty()) text += "  " + CleanText(diagnostic.hint) + "\n";
  return text;
}

}  // namespace trainwreck
