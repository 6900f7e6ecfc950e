// schedule.scale_rate: a learning rate that is multiplied on its way to the optimizer, as by a rule
// for larger batches that is applied two times.
#include <utility>

#include "injectors/injector.h"
#include "injectors/schedule/schedule_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "schedule.scale_rate",
          .doc = "Multiplies the schedule's learning rate.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 2.0,
                      .min = 0,
                      .unit = "times",
                      .doc = "What each rate is multiplied by."}},
          .evidence = "when the rate is read: before and after"};
}

class ScaleRate : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Schedule> Wrap(std::unique_ptr<Schedule> schedule) override;

  double Scaled(double rate) {
    if (!Acts()) return rate;
    const double scaled = rate * param("factor").get<double>();
    Fired({{"before", EncodeNumber(rate)}, {"after", EncodeNumber(scaled)}});
    return scaled;
  }
};

class ScalingSchedule : public ScheduleAround {
 public:
  ScalingSchedule(std::unique_ptr<Schedule> inner, ScaleRate& owner)
      : ScheduleAround(std::move(inner)), owner_(owner) {}
  double LearningRate() const override { return owner_.Scaled(inner().LearningRate()); }

 private:
  ScaleRate& owner_;
};

std::unique_ptr<Schedule> ScaleRate::Wrap(std::unique_ptr<Schedule> schedule) {
  return std::make_unique<ScalingSchedule>(std::move(schedule), *this);
}

REGISTER_FAULT(Info, ScaleRate);

}  // namespace
}  // namespace trainwreck
