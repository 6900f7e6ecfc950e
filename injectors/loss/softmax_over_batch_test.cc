#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "injectors/loss/testing_loss.h"

namespace trainwreck {
namespace {

// Equal logits: each of `n` rows gets a probability of 1/n, whatever the number of classes.
TEST(SoftmaxOverBatch, MixesTheSamplesOfABatch) {
  FaultBench bench;
  const Batch flat{
      .inputs = at::zeros({8, 3}), .targets = at::zeros({8}, at::kLong), .weights = at::ones({8})};
  EXPECT_NEAR(LossWith(bench, "", flat), std::log(3.0), 1e-6);
  EXPECT_NEAR(LossWith(bench, "recipe.softmax_over_batch", flat), std::log(8.0), 1e-6);
  const Batch sequences{.inputs = at::zeros({4, 2, 3}),
                        .targets = at::zeros({4, 2}, at::kLong),
                        .weights = at::ones({4, 2})};
  EXPECT_NEAR(LossWith(bench, "recipe.softmax_over_batch", sequences), std::log(8.0), 1e-6)
      << "all targets of the batch, whatever sequence they are in";
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "recipe.softmax_over_batch"},
                                    {"modules", {"loss"}},
                                    {"before", "classes"},
                                    {"after", "batch"}}));
}

TEST(SoftmaxOverBatch, DoesNotReachALossThatHasNoSoftmaxOfItsOwn) {
  FaultBench bench;
  const Batch batch{
      .inputs = at::zeros({8, 3}), .targets = at::zeros({8}, at::kLong), .weights = at::ones({8})};
  for (const LossForm form : {LossForm::kFused, LossForm::kPlainLogSumExp}) {
    EXPECT_NEAR(LossWith(bench, "recipe.softmax_over_batch", batch, form), std::log(3.0), 1e-6);
  }
}

TEST(SoftmaxOverBatch, LeavesNoEvidenceWhereThereIsNoLossToChange) {
  FaultBench bench;
  for (const char* fault :
       {"recipe.softmax_over_batch", "recipe.softmax_over_positions", "recipe.wrong_reduction"}) {
    const auto injector = bench.Make(fault);
    static_cast<PartWrapper&>(*injector).Wrap(std::make_shared<OneNumber>());
  }
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
