#include <gtest/gtest.h>

#include <cmath>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

TEST(DecayFrozen, DecaysWhatIsNotTrained) {
  FaultBench bench;
  Broken it(bench, "optimizer.decay_frozen", {{"decay", 0.5}});
  it.Step();  // at the rate 0.5
  EXPECT_TRUE(bench.fired().empty()) << "all are trained";
  it.model->head.set_requires_grad(false);
  const double before = it.model->head[0].item<double>();
  EXPECT_EQ(before, 0);
  it.model->body.set_requires_grad(false);
  const double body = it.model->body[0].item<double>();
  it.optimizer->ZeroGrad();
  it.optimizer->Step(0.5);
  EXPECT_NEAR(it.model->body[0].item<double>(), 0.75 * body, 1e-6);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_NEAR(bench.fired()[0]["before"].get<double>(), std::sqrt(2.0) * body, 1e-6);
  EXPECT_NEAR(bench.fired()[0]["after"].get<double>(), 0.75 * std::sqrt(2.0) * body, 1e-6);
}

}  // namespace
}  // namespace trainwreck
