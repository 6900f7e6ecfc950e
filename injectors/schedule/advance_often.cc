// schedule.advance_often: a schedule that counts something else than optimizer steps:
// micro-batches, or the steps of each rank.
#include <utility>

#include "injectors/injector.h"
#include "injectors/schedule/schedule_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "schedule.advance_often",
          .doc = "Advances the schedule several times for one optimizer step.",
          .params = {{.name = "times",
                      .type = ValueType::kInt,
                      .default_value = 2,
                      .min = 0,
                      .unit = "times",
                      .doc = "In all, at each step; 0: it stands still."}},
          .evidence = "at each step: by how much it advances, 1 before and `times` after"};
}

class AdvanceOften : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Schedule> Wrap(std::unique_ptr<Schedule> schedule) override;

  int Times() {
    const int times = param("times").get<int>();
    if (!Acts() || times == 1) return 1;
    Fired({{"before", 1}, {"after", times}});
    return times;
  }
};

class OftenSchedule : public ScheduleAround {
 public:
  OftenSchedule(std::unique_ptr<Schedule> inner, AdvanceOften& owner)
      : ScheduleAround(std::move(inner)), owner_(owner) {}
  void Advance() override {
    for (int times = owner_.Times(); times > 0; --times) inner().Advance();
  }

 private:
  AdvanceOften& owner_;
};

std::unique_ptr<Schedule> AdvanceOften::Wrap(std::unique_ptr<Schedule> schedule) {
  return std::make_unique<OftenSchedule>(std::move(schedule), *this);
}

REGISTER_FAULT(Info, AdvanceOften);

}  // namespace
}  // namespace trainwreck
