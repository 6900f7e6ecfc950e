// The middle of some numbers, and their trend over the steps of a run.
#pragma once

#include <optional>
#include <vector>

#include "harness/statistics/spread.h"

namespace trainwreck::statistics {

// The middle value, or the mean of the two in the middle. Needs one value at least.
double Median(std::vector<double> values);

// The slope of y over x: the median of the slopes between all pairs (H. Theil, 1950), with the
// interval that Kendall's tau gives it (P. K. Sen, 1968). A few values far off the line do not move
// it, and the values need not be normal. Of many values, some hundred at even distances are taken.
// Empty for fewer than four values, or where one is not finite. `x` rises.
std::optional<Estimate> Slope(std::vector<double> x, std::vector<double> y, double confidence);

}  // namespace trainwreck::statistics
