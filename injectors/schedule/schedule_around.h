// A schedule around another, which changes one thing.
#pragma once

#include <memory>
#include <utility>

#include "trainer/parts.h"

namespace trainwreck {

class ScheduleAround : public Schedule {
 public:
  explicit ScheduleAround(std::unique_ptr<Schedule> inner) : inner_(std::move(inner)) {}
  double LearningRate() const override { return inner_->LearningRate(); }
  void Advance() override { inner_->Advance(); }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 protected:
  Schedule& inner() const { return *inner_; }

 private:
  std::unique_ptr<Schedule> inner_;
};

}  // namespace trainwreck
