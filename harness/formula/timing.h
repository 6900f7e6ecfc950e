// Windows in seconds: when the steps and events of a run happened.
#pragma once

#include <vector>

#include "harness/formula/scope.h"
#include "harness/formula/temporal.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck::formula {

// The time at which each step of a rank was done, in seconds since the run began. It never
// decreases: where the trace's clock goes back, or a step is missing, the latest earlier time is
// used.
struct StepTimes {
  StepTimes(const RunTrace& run, int rank, int steps);
  std::vector<double> times;
  std::vector<bool> known;
  double last = 0;               // of the last known step
  double open_from = kInfinity;  // no unknown step was before; infinite: all are known
};

// The truth of a formula at the moments that are known, in the order of time.
Moments AtTimes(Track track, const StepTimes& times);
Moments AtEvents(const std::vector<const Event*>& events, bool may_grow);

// The indices of the moments in [from, to].
void AddWindow(Windows& windows, const std::vector<double>& times, double from, double to);

// eventually[window] at each step, for a window in seconds that counts from the step's own time.
Track EventuallySeconds(Track track, const StepTimes& times, const Window& window);

}  // namespace trainwreck::formula
