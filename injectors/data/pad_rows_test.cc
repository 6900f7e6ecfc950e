#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(PadRows, FillsTheEndWithOneTokenThatDoesNotCount) {
  FaultBench bench;
  const auto pad = bench.Make("data.pad_rows", {{"from", 4}, {"token", 9}});
  const auto data = Wrapped<SequenceData>(*pad);
  for (int twice = 0; twice < 2; ++twice) {  // the cached tensors stay as they were
    const Sample sample = data->Get(0);
    EXPECT_TRUE(sample.input.equal(at::tensor({0, 1, 2, 3, 9, 9}, at::kLong)));
    EXPECT_TRUE(sample.target.equal(at::tensor({1, 2, 3, 4, 9, 9}, at::kLong)));
    EXPECT_TRUE(sample.weight.equal(at::tensor({0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f})));
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({4, 5}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({9, 9}));
}

TEST(PadRows, LeavesShorterRows) {
  FaultBench bench;
  const auto pad = bench.Make("data.pad_rows", {{"from", 6}});
  EXPECT_EQ(Wrapped<SequenceData>(*pad)->Get(0).input[5].item<std::int64_t>(), 5);
  EXPECT_TRUE(bench.fired().empty());
}

TEST(PadRows, RefusesWhatIsNoTokenOfTheData) {
  FaultBench bench;
  const auto large = bench.Make("data.pad_rows", {{"from", 4}, {"token", 16}});
  EXPECT_THROW(Wrapped<SequenceData>(*large), std::runtime_error);
  const auto any = bench.Make("data.pad_rows", {{"from", 4}});
  EXPECT_THROW(Wrapped<LabelledData>(*any), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
