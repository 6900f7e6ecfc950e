#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "injectors/loss/testing_loss.h"

namespace trainwreck {
namespace {

TEST(FirstWeights, WeighsAllSamplesAsTheFirst) {
  FaultBench bench;
  Batch batch{.inputs = at::zeros({2, 3, 4}),
              .targets = at::zeros({2, 3}, at::kLong),
              .weights = at::tensor({0.0f, 1.0f, 1.0f, 1.0f, 0.0f, 0.0f}).view({2, 3})};
  batch.inputs[1][2][0] = 100;  // this target costs nothing
  // Two of the first sample at log 4; one of the second at log 4 as it should be.
  EXPECT_NEAR(LossWith(bench, "", batch), std::log(4.0), 1e-6);
  EXPECT_NEAR(LossWith(bench, "loss.first_weights", batch), 0.75 * std::log(4.0), 1e-6);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["modules"], Json({"loss"}));
}

TEST(FirstWeights, FindsNoLossInOtherModels) {
  FaultBench bench;
  const auto injector = bench.Make("loss.first_weights");
  static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(std::make_shared<OneNumber>()));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
