#include "harness/launch/restarts.h"

#include <algorithm>
#include <cmath>

namespace trainwreck {

double Restarts::WaitAt(double now_s) const {
  return std::min(std::ldexp(policy_.backoff_seconds, CountedAt(now_s)), kMostBackoffSeconds);
}

int Restarts::CountedAt(double now_s) const {
  if (policy_.window_seconds <= 0) return made();
  return static_cast<int>(std::count_if(at_s_.begin(), at_s_.end(), [&](double at_s) {
    return now_s - at_s <= policy_.window_seconds;
  }));
}

}  // namespace trainwreck
