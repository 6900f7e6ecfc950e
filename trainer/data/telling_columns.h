// Columns of features that give the label away: one rule on one column is right on held-out data
// where a model of all columns could hardly be. The rule is Holte's 1R (1993, "Very Simple
// Classification Rules Perform Well on Most Commonly Used Datasets"): the column's values in bins,
// and for each bin its most common label.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

struct TellingColumn {
  std::int64_t column = 0;
  double right = 0;  // share of held-out samples that its rule labels rightly
};

// Bins of equal size in training data, and the samples of each data set that are read at most.
inline constexpr std::int64_t kColumnBins = 32;
inline constexpr std::int64_t kColumnSamples = 4096;
// A column tells the label where its rule makes at most this share of the mistakes of whoever
// always guesses the most common label.
inline constexpr double kTellingMistakes = 0.1;

// Ascending. Inputs float `[features]`, targets int64 `[]`.
std::vector<TellingColumn> FindTellingColumns(const Dataset& training, const Dataset& held_out);

}  // namespace trainwreck
