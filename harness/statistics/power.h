// How many seeds tell two recipes apart: the power of Welch's t test.
#pragma once

#include <optional>
#include <vector>

namespace trainwreck::statistics {

struct Noise {
  double a = 0;  // the standard deviation over seeds of either recipe
  double b = 0;
};

struct TestAims {
  double error = 0.05;  // the probability of seeing a difference where there is none (two-sided)
  double power = 0.8;   // the probability of seeing a difference that is there
};

// The probability that Welch's t test (B. L. Welch, 1947) of `seeds` runs of each recipe finds
// their means to differ, where they do by `difference`. It is read from the noncentral t
// distribution, for which both samples are normal.
double PowerOfWelch(double difference, const Noise& noise, int seeds, double error);

// The least number of seeds of each recipe with that power, two at least. Empty where more than
// `limit` would be needed.
std::optional<int> SeedsToTell(double difference, const Noise& noise, const TestAims& aims,
                               int limit = 100000);

// The least difference that `seeds` runs of each recipe find with that power.
double LeastDifference(int seeds, const Noise& noise, const TestAims& aims);

struct Difference {
  double value = 0;  // of the means, b - a
  double lo = 0;     // the ends of the confidence interval
  double hi = 0;
  double p = 1;  // two-sided, of Welch's t test
};

// Empty where a sample has fewer than two values, or one that is not finite.
std::optional<Difference> WelchTest(const std::vector<double>& a, const std::vector<double>& b,
                                    double confidence);

}  // namespace trainwreck::statistics
