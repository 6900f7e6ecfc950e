#include <gtest/gtest.h>

#include "injectors/schedule/testing_schedule.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

double RateAfterOneStep(FaultBench& bench, int times, Trigger trigger = {}) {
  const auto injector = bench.Make("schedule.advance_often", {{"times", times}}, trigger);
  const auto schedule = static_cast<PartWrapper&>(*injector).Wrap(CountingFrom(0));
  schedule->Advance();
  return schedule->LearningRate();
}

TEST(AdvanceOften, AdvancesSoManyTimes) {
  FaultBench bench;
  EXPECT_EQ(RateAfterOneStep(bench, 4), 4);
  EXPECT_EQ(RateAfterOneStep(bench, 0), 0);
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0]["after"], 4);
  EXPECT_EQ(RateAfterOneStep(bench, 1), 1);
  EXPECT_EQ(RateAfterOneStep(bench, 4, {.from = 2}), 1);
  EXPECT_EQ(bench.fired().size(), 2U) << "nothing was changed";
}

}  // namespace
}  // namespace trainwreck
