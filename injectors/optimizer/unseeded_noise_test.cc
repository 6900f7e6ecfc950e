#include <gtest/gtest.h>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

// The gradient of `body` after a backward pass and the hook.
double Disturbed(FaultBench& bench, double spread, Trigger trigger = {}) {
  Broken it(bench, "optimizer.unseeded_noise", {{"spread", spread}}, trigger);
  const auto hook = static_cast<PartWrapper&>(*it.injector).MakeHook();
  it.model->Loss({}).backward();
  hook->OnBackwardDone(bench.clock.step);
  return it.Gradient(it.model->body);
}

TEST(UnseededNoise, DiffersEachTimeAndStaysNear) {
  FaultBench bench;
  const double first = Disturbed(bench, 0.25), second = Disturbed(bench, 0.25);
  EXPECT_NE(first, second);
  for (const double gradient : {first, second}) EXPECT_NEAR(gradient, 1, 0.25);
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0]["before"], 1.0);
  EXPECT_NEAR(bench.fired()[0]["after"].get<double>(), first, 1e-6);
}

TEST(UnseededNoise, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  EXPECT_EQ(Disturbed(bench, 0.25, {.from = 2}), 1);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
