#include "trainer/optimizers/schedules.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trainwreck {
namespace {

class PlainSchedule : public Schedule {
 public:
  PlainSchedule(const ScheduleRecipe& recipe, double peak, std::int64_t steps)
      : recipe_(recipe), peak_(peak), steps_(steps) {}

  double LearningRate() const override { return LearningRateAt(recipe_, peak_, steps_, step_); }
  void Advance() override { ++step_; }
  void Save(StateDict& state) const override {
    state["schedule.step"] = at::scalar_tensor(step_, at::kLong);
  }
  void Load(const StateDict& state) override {
    auto entry = state.find("schedule.step");
    if (entry != state.end()) step_ = entry->second.item<std::int64_t>();
  }

 private:
  ScheduleRecipe recipe_;
  double peak_;
  std::int64_t steps_;
  std::int64_t step_ = 0;
};

}  // namespace

double LearningRateAt(const ScheduleRecipe& recipe, double peak, std::int64_t steps,
                      std::int64_t k) {
  if (recipe.kind == ScheduleKind::kConstant) return peak;
  const std::int64_t warmup = recipe.warmup_steps;
  if (k < warmup) return peak * static_cast<double>(k + 1) / static_cast<double>(warmup);
  if (recipe.restart_step > 0) {
    // Two decays, each to final_ratio of where it began.
    ScheduleRecipe part = recipe;
    part.restart_step = 0;
    if (k < recipe.restart_step) return LearningRateAt(part, peak, recipe.restart_step, k);
    part.warmup_steps = 0;
    return LearningRateAt(part, peak * recipe.restart_ratio, steps - recipe.restart_step,
                          k - recipe.restart_step);
  }
  const std::int64_t decay = std::max<std::int64_t>(steps - 1 - warmup, 1);
  const double done = std::min(static_cast<double>(k - warmup) / static_cast<double>(decay), 1.0);
  const double height = recipe.kind == ScheduleKind::kWarmupCosine
                            ? 0.5 * (1.0 + std::cos(std::numbers::pi * done))
                            : 1.0 - done;
  return peak * (recipe.final_ratio + (1.0 - recipe.final_ratio) * height);
}

std::unique_ptr<Schedule> MakeSchedule(const ScheduleRecipe& recipe, double peak,
                                       std::int64_t steps) {
  return std::make_unique<PlainSchedule>(recipe, peak, steps);
}

}  // namespace trainwreck
