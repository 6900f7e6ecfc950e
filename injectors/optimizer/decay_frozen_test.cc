#include <gtest/gtest.h>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

TEST(DecayFrozen, DecaysWhatIsNotTrained) {
  FaultBench bench;
  bench.recipe = {{"optimizer.weight_decay", 0.5}};
  Broken it(bench, "optimizer.decay_frozen");
  it.Step();  // at the rate 0.5
  EXPECT_TRUE(bench.fired().empty()) << "all are trained";
  it.model->head.set_requires_grad(false);
  const double before = it.model->head[0].item<double>();
  it.Step();
  EXPECT_NEAR(it.model->head[0].item<double>(), 0.75 * before, 1e-6);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["parameters"], Json({"head"}));
  EXPECT_EQ(bench.fired()[0]["after"], 0.25);
}

TEST(DecayFrozen, DoesNothingWithoutDecay) {
  FaultBench bench;
  Broken it(bench, "optimizer.decay_frozen");
  it.model->head.set_requires_grad(false);
  it.Step();
  EXPECT_EQ(it.model->head[0].item<double>(), 1);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
