#include "harness/launch/steps_done.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace trainwreck {
namespace {

// The steps from one record to the next, as most of them are.
int UsualStride(const std::vector<int>& steps) {
  std::vector<int> strides;
  for (std::size_t i = 1; i < steps.size(); ++i) strides.push_back(steps[i] - steps[i - 1]);
  if (strides.empty()) return 1;
  const auto middle = strides.begin() + static_cast<std::ptrdiff_t>(strides.size() / 2);
  std::nth_element(strides.begin(), middle, strides.end());
  return *middle;
}

}  // namespace

std::optional<StepsDone> CountStepsDone(const RunTrace& trace) {
  std::map<int, std::set<int>> steps_of;  // by rank
  for (const auto& [rank, time] : trace.time_s) {
    if (rank >= trace.world_at(trace.planned_steps)) continue;  // of an earlier start alone
    // It only prints steps, maybe more rarely than the first, which has a trace.
    if (trace.starts.contains(0) && !trace.starts.contains(rank)) continue;
    for (int step = 0; step < static_cast<int>(time.present.size()); ++step) {
      if (time.Has(step)) steps_of[rank].insert(step);
    }
  }
  std::optional<StepsDone> least;
  for (const auto& [rank, steps] : steps_of) {
    const int done = *steps.rbegin() + UsualStride({steps.begin(), steps.end()});
    if (!least || done < least->steps) least = StepsDone{rank, done};
  }
  return least;
}

}  // namespace trainwreck
