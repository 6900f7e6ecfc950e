#include <gtest/gtest.h>

#include <cmath>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

TEST(KeepGradients, LetsThemAddUp) {
  FaultBench bench;
  Broken it(bench, "optimizer.keep_gradients");
  it.Step();
  EXPECT_TRUE(bench.fired().empty()) << "there was nothing to clear yet";
  it.Step();
  it.Step();
  EXPECT_EQ(it.Gradient(it.model->body), 3);
  EXPECT_EQ(it.Gradient(it.model->head), 6);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["parameters"], 2);
  EXPECT_NEAR(bench.fired()[0]["norm"].get<double>(), std::sqrt(2 + 3 * 4), 1e-6);
  EXPECT_EQ(bench.fired()[0]["before"], "cleared");
  EXPECT_EQ(bench.fired()[0]["after"], "kept");
}

TEST(KeepGradients, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  Broken it(bench, "optimizer.keep_gradients", {}, {.from = 2});
  it.Step();
  it.Step();
  EXPECT_EQ(it.Gradient(it.model->body), 1);
  bench.clock.step = 2;
  it.Step();
  EXPECT_EQ(it.Gradient(it.model->body), 2);
}

}  // namespace
}  // namespace trainwreck
