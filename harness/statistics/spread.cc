#include "harness/statistics/spread.h"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace trainwreck::statistics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

double MeanOf(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The standard deviation without value `left_out`. It is exactly 0 for equal values, whatever their
// mean is rounded to.
double Deviation(const std::vector<double>& values, std::size_t left_out = kNone) {
  std::vector<double> kept = values;
  if (left_out != kNone) kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(left_out));
  const auto [least, most] = std::minmax_element(kept.begin(), kept.end());
  if (*least == *most) return 0;
  const double mean = MeanOf(kept);
  double sum = 0;
  for (const double value : kept) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(kept.size() - 1));
}

bool AllFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

double StudentQuantile(std::size_t values, double confidence) {
  const boost::math::students_t student(static_cast<double>(values) - 1);
  return quantile(student, 0.5 + confidence / 2);
}

}  // namespace

std::optional<Estimate> Mean(const std::vector<double>& values, double confidence) {
  if (values.size() < 2 || !AllFinite(values)) return std::nullopt;
  const double mean = MeanOf(values);
  const double error = Deviation(values) / std::sqrt(static_cast<double>(values.size()));
  const double reach = StudentQuantile(values.size(), confidence) * error;
  return Estimate{mean, mean - reach, mean + reach};
}

std::optional<Estimate> Spread(const std::vector<double>& values, double confidence) {
  if (values.size() < 2 || !AllFinite(values)) return std::nullopt;
  const double freedom = static_cast<double>(values.size()) - 1;
  const boost::math::chi_squared squares(freedom);
  const double deviation = Deviation(values);
  const auto end = [&](double p) { return deviation * std::sqrt(freedom / quantile(squares, p)); };
  return Estimate{deviation, end(0.5 + confidence / 2), end(0.5 - confidence / 2)};
}

std::optional<Estimate> RatioOfSpreads(const std::vector<double>& a, const std::vector<double>& b,
                                       double confidence) {
  const std::size_t n = a.size();
  if (n < 3 || b.size() != n || !AllFinite(a) || !AllFinite(b)) return std::nullopt;
  if (a == b) return Estimate{1, 1, 1};
  const double of_a = Deviation(a), of_b = Deviation(b);
  if (of_a == 0 && of_b == 0) return Estimate{1, 1, 1};
  if (of_a == 0) return Estimate{0, 0, 0};
  if (of_b == 0) return Estimate{kInfinity, kInfinity, kInfinity};
  const double log_ratio = std::log(of_a / of_b);
  std::vector<double> pseudo_values;
  for (std::size_t i = 0; i < n; ++i) {
    const double without = std::log(Deviation(a, i) / Deviation(b, i));
    const auto count = static_cast<double>(n);
    pseudo_values.push_back(count * log_ratio - (count - 1) * without);
  }
  const std::optional<Estimate> mean = Mean(pseudo_values, confidence);
  if (!mean) return Estimate{of_a / of_b, 0, kInfinity};
  return Estimate{of_a / of_b, std::exp(mean->lo), std::exp(mean->hi)};
}

}  // namespace trainwreck::statistics
