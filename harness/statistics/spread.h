// The spread of a number over seeds: its standard deviation with an interval, and that of one
// recipe as a multiple of another's.
#pragma once

#include <optional>
#include <vector>

namespace trainwreck::statistics {

struct Estimate {
  double value = 0;
  double lo = 0;  // the ends of the confidence interval
  double hi = 0;
};

// The mean, with Student's t interval. Empty for fewer than two values.
std::optional<Estimate> Mean(const std::vector<double>& values, double confidence);

// The standard deviation (divided by n - 1). The interval is that of the chi-squared distribution,
// so it assumes normal values. Empty for fewer than two values.
std::optional<Estimate> Spread(const std::vector<double>& values, double confidence);

// The standard deviation of `a` over that of `b`, where a[i] and b[i] share seed i. The interval is
// the jackknife's, of the logarithm (R. G. Miller, "Jackknifing variances", 1968): unlike that of
// the F distribution it does not assume normal values, and pairs may be correlated. Of samples that
// are all equal: 0, infinity, or 1 for two of them. Empty for fewer than three pairs, other sizes,
// or a value that is not finite. The interval is all of [0, infinity] where a spread rests on one
// seed alone.
std::optional<Estimate> RatioOfSpreads(const std::vector<double>& a, const std::vector<double>& b,
                                       double confidence);

}  // namespace trainwreck::statistics
