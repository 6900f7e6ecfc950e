#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

TEST(DecayWithoutRate, TakesTheWholeShareWithTheUpdate) {
  FaultBench bench;
  bench.recipe = {{"optimizer.kind", "adamw"}, {"optimizer.weight_decay", 0.25}};
  Broken it(bench, "optimizer.decay_without_rate");
  it.Step();  // at the rate 0.5; the optimizer of the test has no decay of its own
  const double share = (1 - 0.25) / (1 - 0.5 * 0.25);
  EXPECT_NEAR(it.model->body[0].item<double>(), share - 0.5, 1e-6);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 0.125);
  EXPECT_EQ(bench.fired()[0]["after"], 0.25);
}

TEST(DecayWithoutRate, NeedsADecayAndAdamW) {
  FaultBench bench;
  bench.recipe = {{"optimizer.kind", "adamw"}};
  Broken it(bench, "optimizer.decay_without_rate");
  it.Step();
  EXPECT_EQ(it.model->body[0].item<double>(), 0.5);
  EXPECT_TRUE(bench.fired().empty());
  bench.recipe = {{"optimizer.kind", "sgd"}, {"optimizer.weight_decay", 0.25}};
  EXPECT_THROW(Broken(bench, "optimizer.decay_without_rate"), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
