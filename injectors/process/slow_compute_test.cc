#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// The seconds of a step whose work takes 20 ms.
double StepSeconds(LoopHook& hook, int step) {
  const auto began = std::chrono::steady_clock::now();
  hook.OnStepBegin(step);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  hook.OnBackwardDone(step);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

TEST(SlowCompute, MakesTheWorkOfAStepSoManyTimesAsLong) {
  FaultBench bench;
  const auto injector = bench.Make("process.slow_compute", {{"factor", 4}});
  const auto hook = static_cast<PartWrapper&>(*injector).MakeHook();
  EXPECT_GE(StepSeconds(*hook, 0), 0.08);
  EXPECT_GE(StepSeconds(*hook, 1), 0.08);
  ASSERT_EQ(bench.fired().size(), 1U) << "it says so once";
  EXPECT_GE(bench.fired()[0]["after"].get<double>(), 4 * bench.fired()[0]["before"].get<double>());
}

TEST(SlowCompute, LeavesOtherStepsAndRanksAlone) {
  FaultBench bench;
  const auto injector =
      bench.Make("process.slow_compute", {{"factor", 100}}, {.at = 5, .ranks = {0}});
  const auto hook = static_cast<PartWrapper&>(*injector).MakeHook();
  EXPECT_LT(StepSeconds(*hook, 4), 1);
  FaultBench other(1, 2);
  const auto of_other =
      other.Make("process.slow_compute", {{"factor", 100}}, {.at = 5, .ranks = {0}});
  const auto its_hook = static_cast<PartWrapper&>(*of_other).MakeHook();
  EXPECT_LT(StepSeconds(*its_hook, 5), 1);
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_TRUE(other.fired().empty());
}

}  // namespace
}  // namespace trainwreck
