#include <gtest/gtest.h>

#include "injectors/schedule/testing_schedule.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(ScaleRate, MultipliesWhatTheScheduleSays) {
  FaultBench bench;
  const auto injector = bench.Make("schedule.scale_rate", {{"factor", 3.0}}, {.to = 1});
  const auto schedule = static_cast<PartWrapper&>(*injector).Wrap(CountingFrom(0));
  schedule->Advance();
  EXPECT_EQ(schedule->LearningRate(), 3);
  EXPECT_EQ(bench.fired().at(0)["before"], 1.0);
  bench.clock.step = 2;
  EXPECT_EQ(schedule->LearningRate(), 1);
}

}  // namespace
}  // namespace trainwreck
