#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "injectors/model/testing_recomputation.h"

namespace trainwreck {
namespace {

constexpr char kNewMasks[] = "model.recompute_new_masks";

TEST(RecomputeNewMasks, DrawsOtherNumbersInTheSecondPass) {
  FaultBench bench;
  const auto passes = BothPasses(bench, kNewMasks);
  EXPECT_FALSE(at::equal(passes.at(0), passes.at(1)));
  EXPECT_EQ(passes[1].scalar_type(), at::kBFloat16);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", kNewMasks},
                                    {"before", "the first pass's"},
                                    {"after", "the next"}}));
}

TEST(RecomputeNewMasks, LeavesNoEvidenceWhereNothingIsDrawn) {
  FaultBench bench;
  const auto passes = BothPasses(bench, kNewMasks, /*dropout=*/0);
  EXPECT_TRUE(at::equal(passes.at(0), passes.at(1)));
  EXPECT_TRUE(bench.fired().empty());
}

TEST(RecomputeNewMasks, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  const auto passes = BothPasses(bench, kNewMasks, 0.5, {.from = 5});
  EXPECT_TRUE(at::equal(passes.at(0), passes.at(1)));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
