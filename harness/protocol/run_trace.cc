#include "harness/protocol/run_trace.h"

#include <iterator>

namespace trainwreck {

void Series::Set(int step, double value) {
  if (step < 0) return;
  if (step >= static_cast<int>(values.size())) {
    values.resize(step + 1, 0.0);
    present.resize(step + 1, 0);
  }
  values[step] = value;
  present[step] = 1;
}

const Series* RunTrace::Find(const std::string& signal, int rank) const {
  auto found = series.find({signal, rank});
  return found == series.end() ? nullptr : &found->second;
}

int RunTrace::last_step(int rank) const {
  auto found = time_s.find(rank);
  return found == time_s.end() ? -1 : static_cast<int>(found->second.values.size()) - 1;
}

int RunTrace::world_at(int step) const {
  const auto next = worlds.upper_bound(step);
  return next == worlds.begin() ? world_size : std::prev(next)->second;
}

}  // namespace trainwreck
