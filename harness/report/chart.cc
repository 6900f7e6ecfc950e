#include "harness/report/chart.h"

#include <algorithm>
#include <cmath>

namespace trainwreck {
namespace {

constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kAscii[] = {" ", ".", ".", ":", ":", "+", "+", "#", "#"};
constexpr int kLevels = 8;  // of a character

const char* Block(int level, bool unicode) {
  return (unicode ? kBlocks : kAscii)[std::clamp(level, 0, kLevels)];
}

std::size_t Columns(std::size_t count, int width) {
  return std::min<std::size_t>(std::max(width, 1), count);
}

// The bytes of a character of UTF-8 after its first.
bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The end of a part of at most `width` characters.
std::size_t EndOf(const std::string& text, std::size_t begin, int width) {
  std::size_t at = begin;
  for (int columns = 0; at < text.size(); ++at) {
    if (!IsContinuation(text[at]) && columns++ == width) break;
  }
  return at;
}

}  // namespace

std::vector<std::string> Chart(const std::vector<double>& values, const SparkScale& scale,
                               const ChartOptions& options) {
  const int height = std::max(options.height, 1);
  std::vector<std::string> lines(height);
  const std::size_t columns = Columns(values.size(), options.width);
  for (std::size_t column = 0; column < columns; ++column) {
    const auto begin =
        values.begin() + static_cast<std::ptrdiff_t>(column * values.size() / columns);
    const auto end =
        values.begin() + static_cast<std::ptrdiff_t>((column + 1) * values.size() / columns);
    const bool is_finite =
        std::all_of(begin, end, [](double value) { return std::isfinite(value); });
    // The lowest value is seen, too.
    const double levels = height * kLevels - 1;
    const int level =
        is_finite ? 1 + static_cast<int>(std::lround(ShareOf(*(end - 1), scale) * levels)) : 0;
    for (int line = 0; line < height; ++line) {
      const int below = (height - 1 - line) * kLevels;
      lines[line] += !is_finite && below == 0 ? "x" : Block(level - below, options.unicode);
    }
  }
  return lines;
}

int ColumnOf(std::size_t index, std::size_t count, int width) {
  if (index >= count) return -1;
  const std::size_t columns = Columns(count, width);
  // The first column that ends behind the value.
  return static_cast<int>(((index + 1) * columns - 1) / count);
}

std::string Bar(double share, int width, bool unicode) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  std::string bar;
  for (int column = 0; column < full; ++column) bar += Block(kLevels, unicode);
  return bar;
}

std::string Wrapped(const std::string& begin, const std::string& text, int width,
                    const std::string& indent) {
  constexpr int kLeast = 8;  // columns, however narrow the window
  std::string wrapped = begin;
  int room = width - static_cast<int>(begin.size());
  std::size_t from = 0;
  while (true) {
    std::size_t end = EndOf(text, from, std::max(room, kLeast));
    if (end == text.size()) return wrapped + text.substr(from);
    const std::size_t blank = text.rfind(' ', end);
    if (blank != std::string::npos && blank > from) end = blank;
    wrapped += text.substr(from, end - from) + "\n" + indent;
    from = text[end] == ' ' ? end + 1 : end;
    room = width - static_cast<int>(indent.size());
  }
}

}  // namespace trainwreck
