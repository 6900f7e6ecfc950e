#include <gtest/gtest.h>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

class Counting : public Schedule {
 public:
  double LearningRate() const override { return steps; }
  void Advance() override { ++steps; }
  void Save(StateDict& /*state*/) const override {}
  void Load(const StateDict& /*state*/) override {}
  int steps = 0;
};

TEST(ScaleRate, MultipliesWhatTheScheduleSays) {
  FaultBench bench;
  const auto injector = bench.Make("schedule.scale_rate", {{"factor", 3.0}}, {.to = 1});
  const auto schedule = static_cast<PartWrapper&>(*injector).Wrap(
      std::unique_ptr<Schedule>(std::make_unique<Counting>()));
  schedule->Advance();
  EXPECT_EQ(schedule->LearningRate(), 3);
  EXPECT_EQ(bench.fired().at(0)["before"], 1.0);
  bench.clock.step = 2;
  EXPECT_EQ(schedule->LearningRate(), 1);
}

}  // namespace
}  // namespace trainwreck
