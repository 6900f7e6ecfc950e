#include "harness/launch/pace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace trainwreck {
namespace {

constexpr double kSlowestTimes = 5;  // a stall is longer than so many of the slowest step
constexpr double kMostBudgets = 10;  // that a slow run may take, while it makes progress
constexpr double kGpuStartSeconds = 60;
constexpr double kGpuStartSecondsEach = 15;  // 15 at once have hung for a minute on one H200

}  // namespace

double GpuStartSeconds(int runs_at_once) {
  return std::max(kGpuStartSeconds, kGpuStartSecondsEach * runs_at_once);
}

Pace::Pace(const Policy& policy, const TimeLimits& limits, int planned_steps, double least_start_s)
    : stall_s_(policy.has_stall_seconds ? policy.stall_seconds
                                        : limits.stall_seconds.value_or(policy.stall_seconds)),
      budget_s_(policy.has_seconds ? policy.seconds : limits.seconds.value_or(policy.seconds)),
      is_start_declared_(limits.start_seconds.has_value()),
      is_budget_hard_(policy.has_seconds),
      planned_steps_(planned_steps) {
  start_s_ = limits.start_seconds.value_or(
      std::max({limits.usual_start_seconds, least_start_s, stall_s_}));
}

void Pace::BeginAttempt(double now_s) {
  if (has_begun_) worked_before_ += last_s_ - begun_s_;
  has_begun_ = false;
  attempt_s_ = last_s_ = now_s;
}

void Pace::Progress(double now_s, bool has_begun, int steps_done) {
  if (has_begun_) slowest_s_ = std::max(slowest_s_, now_s - last_s_);
  if (has_begun && !has_begun_) {
    has_begun_ = true;
    begun_s_ = now_s;
  }
  steps_done_ = std::max(steps_done_, steps_done);
  last_s_ = now_s;
}

double Pace::stall_limit_s() const { return std::max(stall_s_, kSlowestTimes * slowest_s_); }

double Pace::start_limit_s() const { return start_s_; }

double Pace::worked_s(double now_s) const {
  return worked_before_ + (has_begun_ ? now_s - begun_s_ : 0);
}

double Pace::projected_s(double now_s) const {
  const double worked = worked_s(now_s);
  if (steps_done_ <= 0) return std::numeric_limits<double>::infinity();
  return worked * std::max(1.0, static_cast<double>(planned_steps_) / steps_done_);
}

Overrun Pace::Check(double now_s, bool is_any_dead) const {
  const double used_s = is_budget_hard_ ? now_s : worked_s(now_s);
  const double most_s = is_budget_hard_ ? budget_s_ : kMostBudgets * budget_s_;
  if (used_s > budget_s_ && (is_budget_hard_ || projected_s(now_s) > most_s)) {
    return Overrun::kBudget;
  }
  if (!has_begun_ && !is_any_dead) {
    return now_s - attempt_s_ > start_s_ ? Overrun::kStart : Overrun::kNone;
  }
  return idle_s(now_s) > stall_limit_s() ? Overrun::kStall : Overrun::kNone;
}

std::string Pace::Sentence(Overrun overrun, double now_s) const {
  if (overrun == Overrun::kStart) {
    return fmt::format("no first step within {} s ({})", start_s_,
                       is_start_declared_
                           ? "'start_seconds' of the target"
                           : "if it needs longer to start, give the target 'start_seconds'");
  }
  if (overrun != Overrun::kBudget) return "";
  if (is_budget_hard_) return fmt::format("over its budget of {} s", budget_s_);
  const double projected = projected_s(now_s);
  if (projected == std::numeric_limits<double>::infinity()) {
    return fmt::format("over its budget of {} s", budget_s_);
  }
  return fmt::format(
      "over its budget of {} s, and at its pace, {} of {} steps in {:.0f} s, it would take {:.0f} "
      "s; 'budget' of the target in trainwreck.yaml says how long a run may take",
      budget_s_, steps_done_, planned_steps_, worked_s(now_s), projected);
}

}  // namespace trainwreck
