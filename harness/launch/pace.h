// How long a run may take: for its start, between two signs of progress, and in all. The limits
// follow the run's own pace, so that a slow machine or a slow program is not taken for a hang.
// docs/guide/targets.md has the rules. Times are seconds since the run began; nothing here reads a
// clock.
#pragma once

#include <optional>
#include <string>

#include "harness/plan/run.h"

namespace trainwreck {

// The limits in the target's file, and one for a start of which it says nothing. A scenario may
// lower those of the work and of a stall.
struct TimeLimits {
  std::optional<double> start_seconds;  // up to the first step of an attempt
  std::optional<double> seconds;        // for the work, without the starts
  std::optional<double> stall_seconds;  // without progress, after the first step
  double usual_start_seconds = 20;      // loading, warming up
};

// The least time of a start on a GPU, of whose runs so many may start at once: all of them ask the
// driver, and load libraries and kernels, up to the end of their first step. Not run on a GPU yet.
double GpuStartSeconds(int runs_at_once);

enum class Overrun { kNone, kStart, kStall, kBudget };

class Pace {
 public:
  Pace() = default;
  // `least_start_s`: of a start whose limit the target does not declare.
  Pace(const Policy& policy, const TimeLimits& limits, int planned_steps, double least_start_s = 0);

  void BeginAttempt(double now_s);
  // The trace has grown. `has_begun`: a rank of this attempt has done a step or a collective;
  // `steps_done`: of the whole run.
  void Progress(double now_s, bool has_begun, int steps_done);
  void Touch(double now_s) { last_s_ = now_s; }  // a rank ended

  // Whether a limit is exceeded. After a rank has died, the others can only wait, so this time no
  // longer counts as a start.
  Overrun Check(double now_s, bool is_any_dead) const;
  // The answer of Check in words: "over its budget of 2 s ...". Empty for a stall, where the
  // watchdog knows more.
  std::string Sentence(Overrun overrun, double now_s) const;

  double idle_s(double now_s) const { return now_s - last_s_; }
  double stall_limit_s() const;
  double start_limit_s() const;
  double budget_s() const { return budget_s_; }

 private:
  double worked_s(double now_s) const;
  double projected_s(double now_s) const;  // of work, at the pace so far

  double start_s_ = 0;
  double stall_s_ = 0;
  double budget_s_ = 0;
  bool is_start_declared_ = false;
  bool is_budget_hard_ = false;  // the scenario gives it: it holds at any pace
  int planned_steps_ = 0;
  int steps_done_ = 0;
  bool has_begun_ = false;    // in this attempt
  double attempt_s_ = 0;      // when this attempt began
  double begun_s_ = 0;        // when its first step was seen
  double last_s_ = 0;         // the last sign of progress
  double slowest_s_ = 0;      // the longest time between two signs of progress, after a first step
  double worked_before_ = 0;  // in earlier attempts
};

}  // namespace trainwreck
