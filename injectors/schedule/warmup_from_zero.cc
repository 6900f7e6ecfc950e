// schedule.warmup_from_zero: a warmup that counts steps from 0, and divides by 1 where there is
// none: the first update is then lost.
#include <algorithm>
#include <utility>

#include "injectors/injector.h"
#include "injectors/schedule/schedule_around.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "schedule.warmup_from_zero",
          .doc =
              "Lets the warmup begin at a rate of 0, and takes one of 0 steps for one of 1 step "
              "(schedules with a warmup).",
          .has_trigger = false,
          .evidence =
              "once: the first learning rate before and after. Nothing with a constant "
              "schedule."};
}

class WarmupFromZero : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Schedule> Wrap(std::unique_ptr<Schedule> schedule) override {
    const TrainingRecipe recipe = ParseRecipe(*context().recipe);
    if (recipe.schedule.kind == ScheduleKind::kConstant) return schedule;
    return std::make_unique<FromZero>(std::move(schedule), *this, recipe);
  }

 private:
  class FromZero : public ScheduleAround {
   public:
    FromZero(std::unique_ptr<Schedule> inner, WarmupFromZero& owner, const TrainingRecipe& recipe)
        : ScheduleAround(std::move(inner)),
          owner_(owner),
          peak_(recipe.optimizer.lr),
          warmup_(std::max<std::int64_t>(recipe.schedule.warmup_steps, 1)) {}

    double LearningRate() const override {
      const double before = inner().LearningRate();
      const std::int64_t step = Step();
      if (step >= warmup_) return before;
      const double after = peak_ * static_cast<double>(step) / static_cast<double>(warmup_);
      owner_.Changed(before, after);
      return after;
    }

   private:
    std::int64_t Step() const {
      StateDict state;
      inner().Save(state);
      return state.at("schedule.step").item<std::int64_t>();
    }

    WarmupFromZero& owner_;
    double peak_;
    std::int64_t warmup_;
  };

  void Changed(double before, double after) {
    if (std::exchange(fired_, true)) return;
    Fired({{"before", EncodeNumber(before)}, {"after", EncodeNumber(after)}});
  }

  bool fired_ = false;
};

REGISTER_FAULT(Info, WarmupFromZero);

}  // namespace
}  // namespace trainwreck
