// The samples of one signal of one run, and the functions over a slice of them.
#pragma once

#include <utility>

#include "harness/formula/node.h"
#include "harness/formula/value.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck::formula {

// The state of a sample. One that is not recorded never will be (kAbsent), or still may come or may
// have been lost (kFuture).
enum class SampleState { kPresent, kAbsent, kFuture };

struct Samples {
  const Series* series = nullptr;  // null: no sample
  int planned_steps = 0;
  bool sparse = false;
  bool may_grow = true;  // the run is not finished, or not there
  int last_step = -1;    // the last recorded step
  int reached = -1;      // the last step that the run made, recorded or not
  bool lossy = false;    // records were lost: any missing sample may be one of them

  SampleState At(int step) const {
    if (series != nullptr && series->Has(step)) return SampleState::kPresent;
    if (lossy) return SampleState::kFuture;
    return may_grow && step >= last_step ? SampleState::kFuture : SampleState::kAbsent;
  }
  // A step of the run at which a sparse signal was not recorded.
  bool IsLeftOut(int step) const {
    return sparse && step <= reached && At(step) == SampleState::kAbsent;
  }
  // The sample as it stands, NaN where there is none.
  double Raw(int step) const;
  // NaN and missing samples are unknown.
  Interval Known(int step) const { return Point(Raw(step)); }
};

// The steps of a slice as a half-open range, inside [0, planned_steps].
std::pair<int, int> StepsOf(const Slice& slice, int planned_steps);

// One number over a slice. Unknown where a sample that it depends on is unknown. Mean, sum and the
// like depend on every sample; for min, max and count the known samples already give bounds.
Interval Aggregated(Aggregate aggregate, const Samples& samples, std::pair<int, int> range);

// How many samples of the first slice have a value that occurs in the second.
Interval Overlap(const Samples& first, std::pair<int, int> first_range, const Samples& second,
                 std::pair<int, int> second_range);

// Both take finite values; `values` is the scratch of the median. Exposed for the detectors and
// tests.
double MedianOf(std::vector<double> values);
double SlopeOf(const std::vector<double>& times, const std::vector<double>& values);

}  // namespace trainwreck::formula
