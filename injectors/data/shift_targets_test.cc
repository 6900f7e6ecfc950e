#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(ShiftTargets, TakesTargetAndWeightOfAnotherPosition) {
  FaultBench bench;
  const auto ahead = bench.Make("data.shift_targets", {{"by", 1}});
  const auto data = Wrapped<SequenceData>(*ahead);
  EXPECT_EQ(data->entropy_floor(), 0.5);
  for (int twice = 0; twice < 2; ++twice) {
    const Sample sample = data->Get(0);
    EXPECT_TRUE(sample.target.equal(at::tensor({2, 3, 4, 5, 6, 0}, at::kLong)));
    EXPECT_TRUE(sample.weight.equal(at::tensor({0.0f, 1.0f, 1.0f, 1.0f, 1.0f, 0.0f})));
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({1, 2, 3, 4}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({2, 3, 4, 5}));
  const auto back = bench.Make("data.shift_targets", {{"by", -1}});
  const Sample sample = Wrapped<SequenceData>(*back)->Get(0);
  EXPECT_TRUE(sample.target.narrow(0, 1, 5).equal(sample.input.narrow(0, 1, 5)));
  EXPECT_EQ(sample.weight[0].item<double>(), 0);
}

TEST(ShiftTargets, RefusesFeatures) {
  FaultBench bench;
  const auto shift = bench.Make("data.shift_targets", {{"by", 1}});
  EXPECT_THROW(Wrapped<LabelledData>(*shift), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
