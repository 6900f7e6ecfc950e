#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "injectors/loss/testing_loss.h"

namespace trainwreck {
namespace {

Batch EqualLogits() {
  return {.inputs = at::zeros({4, 5, 3}),
          .targets = at::zeros({4, 5}, at::kLong),
          .weights = at::ones({4, 5})};
}

TEST(SoftmaxOverPositions, MixesThePositionsOfASequence) {
  FaultBench bench;
  Batch batch = EqualLogits();
  EXPECT_NEAR(LossWith(bench, "", batch), std::log(3.0), 1e-6);
  EXPECT_NEAR(LossWith(bench, "recipe.softmax_over_positions", batch), std::log(5.0), 1e-6);
  batch.inputs[1][2].fill_(9);  // takes probability from its own sequence alone
  batch.weights.zero_()[0].fill_(1);
  EXPECT_NEAR(LossWith(bench, "recipe.softmax_over_positions", batch), std::log(5.0), 1e-6);
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "recipe.softmax_over_positions"},
                                    {"modules", {"loss"}},
                                    {"before", "classes"},
                                    {"after", "positions"}}));
}

TEST(SoftmaxOverPositions, DoesNotReachTheFusedLoss) {
  FaultBench bench;
  EXPECT_NEAR(LossWith(bench, "recipe.softmax_over_positions", EqualLogits(), LossForm::kFused),
              std::log(3.0), 1e-6);
}

TEST(SoftmaxOverPositions, NeedsPositions) {
  FaultBench bench;
  const Batch flat{
      .inputs = at::zeros({8, 3}), .targets = at::zeros({8}, at::kLong), .weights = at::ones({8})};
  EXPECT_THROW(LossWith(bench, "recipe.softmax_over_positions", flat), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
