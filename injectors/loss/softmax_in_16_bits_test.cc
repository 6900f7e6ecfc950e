#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "injectors/loss/testing_loss.h"

namespace trainwreck {
namespace {

// A third lies between two numbers of bf16, whose significand has 8 bits.
TEST(SoftmaxIn16Bits, RoundsTheProbabilities) {
  FaultBench bench;
  const Batch batch{
      .inputs = at::zeros({8, 3}), .targets = at::zeros({8}, at::kLong), .weights = at::ones({8})};
  const double third = 171.0 / 512;
  EXPECT_NEAR(LossWith(bench, "", batch), std::log(3.0), 1e-6);
  EXPECT_NEAR(LossWith(bench, "loss.softmax_in_16_bits", batch), -std::log(third), 1e-6);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["modules"], Json({"loss"}));
}

TEST(SoftmaxIn16Bits, DoesNotReachALossThatHasNoSoftmaxOfItsOwn) {
  FaultBench bench;
  const Batch batch{
      .inputs = at::zeros({8, 3}), .targets = at::zeros({8}, at::kLong), .weights = at::ones({8})};
  for (const LossForm form : {LossForm::kFused, LossForm::kPlainLogSumExp}) {
    EXPECT_NEAR(LossWith(bench, "loss.softmax_in_16_bits", batch, form), std::log(3.0), 1e-6);
  }
}

}  // namespace
}  // namespace trainwreck
