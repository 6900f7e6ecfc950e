#include "harness/statistics/power.h"

#include <algorithm>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "harness/statistics/spread.h"

namespace trainwreck::statistics {
namespace {

// The standard error of a difference of means, and the degrees of freedom that Satterthwaite (1946)
// gives it.
struct WelchError {
  double error = 0;
  double freedom = 1;
};

WelchError ErrorOf(const Noise& noise, int seeds_a, int seeds_b) {
  const double a = noise.a * noise.a / seeds_a, b = noise.b * noise.b / seeds_b;
  if (a + b == 0) return {0, static_cast<double>(seeds_a + seeds_b - 2)};
  return {std::sqrt(a + b), (a + b) * (a + b) / (a * a / (seeds_a - 1) + b * b / (seeds_b - 1))};
}

}  // namespace

double PowerOfWelch(double difference, const Noise& noise, int seeds, double error) {
  const WelchError welch = ErrorOf(noise, seeds, seeds);
  if (welch.error == 0) return difference == 0 ? error : 1;
  const double shift = std::abs(difference) / welch.error;
  const double limit = quantile(complement(boost::math::students_t(welch.freedom), error / 2));
  if (shift == 0) return error;
  if (shift > limit + 30) return 1;  // beyond doubt, and beyond the series of the distribution
  const boost::math::non_central_t shifted(welch.freedom, shift);
  return cdf(complement(shifted, limit)) + cdf(shifted, -limit);
}

std::optional<int> SeedsToTell(double difference, const Noise& noise, const TestAims& aims,
                               int limit) {
  const auto tells = [&](int seeds) {
    return PowerOfWelch(difference, noise, seeds, aims.error) >= aims.power;
  };
  int enough = 2;
  while (enough < limit && !tells(enough)) enough = std::min(2 * enough, limit);
  if (!tells(enough)) return std::nullopt;
  int too_few = enough == 2 ? 1 : enough / 2;  // power grows with the number of seeds
  while (enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    (tells(middle) ? enough : too_few) = middle;
  }
  return enough;
}

double LeastDifference(int seeds, const Noise& noise, const TestAims& aims) {
  const double error = ErrorOf(noise, seeds, seeds).error;
  double too_small = 0, enough = 100 * error;
  for (int i = 0; i < 60 && error > 0; ++i) {
    const double middle = (too_small + enough) / 2;
    const bool tells = PowerOfWelch(middle, noise, seeds, aims.error) >= aims.power;
    (tells ? enough : too_small) = middle;
  }
  return enough;
}

std::optional<Difference> WelchTest(const std::vector<double>& a, const std::vector<double>& b,
                                    double confidence) {
  const auto mean_a = Mean(a, confidence), mean_b = Mean(b, confidence);
  const auto spread_a = Spread(a, confidence), spread_b = Spread(b, confidence);
  if (!mean_a || !mean_b || !spread_a || !spread_b) return std::nullopt;
  const WelchError welch = ErrorOf({spread_a->value, spread_b->value}, static_cast<int>(a.size()),
                                   static_cast<int>(b.size()));
  const double value = mean_b->value - mean_a->value;
  if (welch.error == 0) return Difference{value, value, value, value == 0 ? 1.0 : 0.0};
  const boost::math::students_t student(welch.freedom);
  const double reach = quantile(student, 0.5 + confidence / 2) * welch.error;
  return Difference{value, value - reach, value + reach,
                    2 * cdf(complement(student, std::abs(value) / welch.error))};
}

}  // namespace trainwreck::statistics
