// The learning rate over a run: linear warmup from 0 to the peak (Goyal et al. 2017), then
// constant, half a cosine (Loshchilov and Hutter 2017) or a line down to final_ratio of the peak at
// the run's last step, once or, with a warm restart (same paper), twice. State: schedule.step.
#pragma once

#include <memory>

#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

// The rate of step k (from 0) in a run of `steps`. In the warmup of w steps it is peak * (k + 1) /
// w; a constant schedule has no warmup.
double LearningRateAt(const ScheduleRecipe& recipe, double peak, std::int64_t steps,
                      std::int64_t k);

std::unique_ptr<Schedule> MakeSchedule(const ScheduleRecipe& recipe, double peak,
                                       std::int64_t steps);

}  // namespace trainwreck
