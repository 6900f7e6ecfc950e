// Whether a supervisor may start a run again, and how long it waits before it does. Times are
// seconds since the run began; nothing here reads a clock.
#pragma once

#include <vector>

#include "harness/plan/run.h"

namespace trainwreck {

inline constexpr double kMostBackoffSeconds = 60;

class Restarts {
 public:
  Restarts() = default;
  explicit Restarts(const Policy& policy) : policy_(policy) {}

  bool May(double now_s) const { return CountedAt(now_s) < policy_.max_restarts; }
  // Seconds to wait before the next restart: the policy's back-off, doubled for each restart that
  // counts, at most kMostBackoffSeconds.
  double WaitAt(double now_s) const;
  void Note(double now_s) { at_s_.push_back(now_s); }  // a new attempt began

  int made() const { return static_cast<int>(at_s_.size()); }

 private:
  int CountedAt(double now_s) const;  // restarts within the window; without one, all

  Policy policy_;
  std::vector<double> at_s_;
};

}  // namespace trainwreck
