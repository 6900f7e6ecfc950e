#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/report/console.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace {

constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kAscii[] = {"_", ".", "-", "=", "+", "*", "%", "#"};
constexpr int kLevels = 8;
constexpr double kExploded = 2;  // times where it began: higher values are all alike

}  // namespace

double ShareOf(double value, const SparkScale& scale) {
  double share = 0.5;
  if (scale.hi > scale.lo) {
    share = scale.log
                ? std::log(std::max(value, scale.lo) / scale.lo) / std::log(scale.hi / scale.lo)
                : (value - scale.lo) / (scale.hi - scale.lo);
  }
  return std::clamp(share, 0.0, 1.0);
}

SparkScale FitScale(const std::vector<const std::vector<double>*>& series) {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -lo;
  double beginning = hi;
  for (const std::vector<double>* values : series) {
    if (!values->empty() && std::isfinite(values->front())) {
      beginning = std::max(beginning, values->front());
    }
    for (double value : *values) {
      if (!std::isfinite(value)) continue;
      lo = std::min(lo, value);
      hi = std::max(hi, value);
    }
  }
  SparkScale scale;
  if (lo > hi) return scale;
  scale.lo = lo;
  scale.hi = beginning > 0 && std::isfinite(beginning) ? std::min(hi, kExploded * beginning) : hi;
  scale.log = lo > 0 && scale.hi >= 10 * lo;
  return scale;
}

std::string Sparkline(const std::vector<double>& values, int width, bool unicode,
                      const SparkScale& scale) {
  std::string text;
  const std::size_t columns = std::min<std::size_t>(std::max(width, 1), values.size());
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t begin = column * values.size() / columns;
    const std::size_t end = (column + 1) * values.size() / columns;
    const bool finite = std::all_of(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                    values.begin() + static_cast<std::ptrdiff_t>(end),
                                    [](double value) { return std::isfinite(value); });
    if (!finite) {
      text += 'x';
    } else {
      const int level =
          static_cast<int>(std::lround(ShareOf(values[end - 1], scale) * (kLevels - 1)));
      text += unicode ? kBlocks[level] : kAscii[level];
    }
  }
  return text;
}

// Adding 0.0 makes -0, which an exact equality has, read as 0.
std::string FormatMargin(double margin, formula::Unit unit) {
  const std::string name = formula::ToString(unit);
  return (margin > 0 ? "+" : "") + FormatNumber(margin + 0.0) + (name.empty() ? "" : " " + name);
}

}  // namespace trainwreck
