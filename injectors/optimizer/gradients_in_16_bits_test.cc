#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "injectors/optimizer/testing_masters.h"

namespace trainwreck {
namespace {

// The sum of 1 and 1/512 needs more bits than bf16 has.
TEST(GradientsIn16Bits, AddUpInTheParametersType) {
  FaultBench bench;
  WithMastersAnd it(bench, "optimizer.gradients_in_16_bits");
  it.optimizer->ZeroGrad();
  it.model->body.sum().backward();
  (it.model->body.sum() / 512).backward();
  EXPECT_EQ(it.model->body.grad().scalar_type(), at::kBFloat16);
  EXPECT_EQ(it.model->body.grad()[0].item<double>(), 1);
  it.optimizer->Step(0.5);
  EXPECT_EQ(it.Master("body"), 0.5);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["parameters"], 2);
  EXPECT_EQ(bench.fired()[0]["before"], "Float");
  EXPECT_EQ(bench.fired()[0]["after"], "BFloat16");
}

TEST(GradientsIn16Bits, LeavesNoEvidenceWithoutMasters) {
  FaultBench bench;
  WithMastersAnd it(bench, "optimizer.gradients_in_16_bits", {}, /*masters=*/false);
  it.Step();
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
