// How long parts of a step take: Stopwatch watch(scalars.data_s);
#pragma once

#include <time.h>

#include <chrono>

namespace trainwreck {

struct WallClock {
  static double Seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

// The processor time of all threads of this process. Other programs on the machine hardly change
// it.
struct ProcessorClock {
  static double Seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
};

// Adds the seconds until its end to `total_s`.
template <typename Clock>
class StopwatchOf {
 public:
  explicit StopwatchOf(double& total_s) : total_s_(total_s), began_s_(Clock::Seconds()) {}
  ~StopwatchOf() { total_s_ += Clock::Seconds() - began_s_; }
  StopwatchOf(const StopwatchOf&) = delete;
  StopwatchOf& operator=(const StopwatchOf&) = delete;

 private:
  double& total_s_;
  double began_s_;
};

using Stopwatch = StopwatchOf<WallClock>;
using ProcessorStopwatch = StopwatchOf<ProcessorClock>;

}  // namespace trainwreck
