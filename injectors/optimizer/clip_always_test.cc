#include <gtest/gtest.h>

#include <cmath>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

// The gradients of TwoWeights have the norm sqrt(2 * 1 + 3 * 4).
TEST(ClipAlways, ScalesSmallGradientsUp) {
  FaultBench bench;
  bench.recipe["optimizer.clip_norm"] = 10 * std::sqrt(14.0);
  Broken it(bench, "optimizer.clip_always");
  for (int twice = 0; twice < 2; ++twice) it.Step();
  EXPECT_NEAR(it.Gradient(it.model->body), 10, 1e-5);
  EXPECT_NEAR(it.Gradient(it.model->head), 20, 1e-5);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_NEAR(bench.fired()[0]["before"].get<double>(), std::sqrt(14.0), 1e-6);
  EXPECT_NEAR(bench.fired()[0]["after"].get<double>(), 10 * std::sqrt(14.0), 1e-6);
}

TEST(ClipAlways, DoesNothingWithoutClipping) {
  FaultBench bench;
  Broken it(bench, "optimizer.clip_always");
  it.Step();
  EXPECT_EQ(it.Gradient(it.model->head), 2);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
