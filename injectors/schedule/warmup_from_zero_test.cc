#include <gtest/gtest.h>

#include "injectors/schedule/testing_schedule.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

std::vector<double> FirstRates(FaultBench& bench) {
  const auto injector = bench.Make("schedule.warmup_from_zero");
  const auto schedule = static_cast<PartWrapper&>(*injector).Wrap(CountingFrom(1));
  std::vector<double> rates;
  for (int step = 0; step < 4; ++step) {
    rates.push_back(schedule->LearningRate());
    schedule->Advance();
  }
  StateDict state;
  schedule->Save(state);
  schedule->Load(state);
  EXPECT_EQ(schedule->LearningRate(), 5);
  return rates;
}

TEST(WarmupFromZero, BeginsAtARateOfZero) {
  FaultBench bench;
  bench.recipe = {
      {"schedule.kind", "warmup_cosine"}, {"schedule.warmup_steps", 2}, {"optimizer.lr", 8.0}};
  EXPECT_EQ(FirstRates(bench), (std::vector<double>{0, 4, 3, 4}));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 1.0);
  EXPECT_EQ(bench.fired()[0]["after"], 0.0);
  bench.recipe["schedule.warmup_steps"] = 0;
  EXPECT_EQ(FirstRates(bench), (std::vector<double>{0, 2, 3, 4}));
}

TEST(WarmupFromZero, LeavesAConstantRate) {
  FaultBench bench;
  EXPECT_EQ(FirstRates(bench), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
