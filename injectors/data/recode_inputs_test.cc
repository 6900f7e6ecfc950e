#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(RecodeInputs, RenumbersInputsBehindThePromptAndNoTargets) {
  FaultBench bench;
  const auto recode = bench.Make("data.recode_inputs", {{"by", 13}, {"from", 2}});
  const auto data = Wrapped<SequenceData>(*recode);
  for (int twice = 0; twice < 2; ++twice) {  // the cached tensors stay as they were
    const Sample sample = data->Get(0);
    EXPECT_TRUE(sample.input.equal(at::tensor({0, 1, 15, 0, 1, 2}, at::kLong))) << "of 16 tokens";
    EXPECT_TRUE(sample.target.equal(at::tensor({1, 2, 3, 4, 5, 6}, at::kLong)));
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({2, 3, 4, 5}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({15, 0, 1, 2}));
}

TEST(RecodeInputs, LeavesSequencesThatAreAllPrompt) {
  FaultBench bench;
  const auto recode = bench.Make("data.recode_inputs", {{"from", 6}});
  EXPECT_EQ(Wrapped<SequenceData>(*recode)->Get(0).input[5].item<std::int64_t>(), 5);
  EXPECT_TRUE(bench.fired().empty());
}

TEST(RecodeInputs, RefusesFeatures) {
  FaultBench bench;
  const auto recode = bench.Make("data.recode_inputs");
  EXPECT_THROW(Wrapped<LabelledData>(*recode), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
