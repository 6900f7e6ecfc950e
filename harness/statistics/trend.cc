#include "harness/statistics/trend.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstddef>

namespace trainwreck::statistics {
namespace {

constexpr std::size_t kMostValues = 400;  // 79,800 pairs

void ThinOut(std::vector<double>& values) {
  const std::size_t every = (values.size() + kMostValues - 1) / kMostValues;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < values.size(); i += every) values[kept++] = values[i];
  values.resize(kept);
}

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<Estimate> Slope(std::vector<double> x, std::vector<double> y, double confidence) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (y.size() < 4 || x.size() != y.size() || !std::all_of(y.begin(), y.end(), is_finite)) {
    return std::nullopt;
  }
  ThinOut(x);
  ThinOut(y);
  std::vector<double> slopes;
  for (std::size_t j = 1; j < y.size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
  }
  std::sort(slopes.begin(), slopes.end());
  const std::size_t pairs = slopes.size();
  const auto n = static_cast<double>(y.size());
  const double z = quantile(boost::math::normal(), (1 + confidence) / 2);
  const double width = z * std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  // Sen's M1-th slope from below, and as many from above; counted from 1.
  const double below = std::floor((static_cast<double>(pairs) - width) / 2);
  const auto low = static_cast<std::size_t>(std::max(below - 1, 0.0));
  return Estimate{.value = (slopes[(pairs - 1) / 2] + slopes[pairs / 2]) / 2,
                  .lo = slopes[low],
                  .hi = slopes[pairs - 1 - low]};
}

}  // namespace trainwreck::statistics
