// A schedule for tests whose rates tell how often it was advanced.
#pragma once

#include <ATen/ops/scalar_tensor.h>

#include <memory>

#include "trainer/parts.h"

namespace trainwreck {

// A schedule with the rates first, first + 1, ...
class CountingSchedule : public Schedule {
 public:
  explicit CountingSchedule(int first) : first_(first) {}
  double LearningRate() const override { return first_ + step_; }
  void Advance() override { ++step_; }
  void Save(StateDict& state) const override {
    state["schedule.step"] = at::scalar_tensor(step_, at::kLong);
  }
  void Load(const StateDict& state) override { step_ = state.at("schedule.step").item<int>(); }

 private:
  int first_;
  int step_ = 0;
};

inline std::unique_ptr<Schedule> CountingFrom(int first) {
  return std::make_unique<CountingSchedule>(first);
}

}  // namespace trainwreck
