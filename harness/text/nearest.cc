#include "harness/text/nearest.h"

#include <algorithm>
#include <cstddef>

namespace trainwreck {
namespace {

constexpr std::size_t kLongestName = 64;  // beyond it nothing is a typing error

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int changed = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(std::string_view name, const std::vector<std::string>& known) {
  if (name.empty() || name.size() > kLongestName) return "";
  std::string nearest;
  int least = std::max(1, static_cast<int>(name.size() + 1) / 3) + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongestName) continue;
    const int distance = EditDistance(name, candidate);
    if (distance < least && distance < static_cast<int>(candidate.size())) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = NearestName(name, known);
  return nearest.empty() ? "" : "did you mean '" + nearest + "'?";
}

std::string NearestHint(std::string_view name, const std::vector<std::string>& known) {
  const std::string question = DidYouMean(name, known);
  return question.empty() ? "" : " (" + question + ")";
}

}  // namespace trainwreck
