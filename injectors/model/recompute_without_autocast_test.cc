#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "injectors/model/testing_recomputation.h"

namespace trainwreck {
namespace {

constexpr char kWithoutAutocast[] = "model.recompute_without_autocast";

TEST(RecomputeWithoutAutocast, RunsTheSecondPassInFp32) {
  FaultBench bench;
  const auto passes = BothPasses(bench, kWithoutAutocast);
  EXPECT_EQ(passes.at(0).scalar_type(), at::kBFloat16);
  EXPECT_EQ(passes.at(1).scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(passes[0].to(at::kFloat), passes[1])) << "the masks are the same";
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(
      bench.fired()[0],
      Json({{"id", "it"}, {"fault", kWithoutAutocast}, {"before", "BFloat16"}, {"after", "none"}}));
}

TEST(RecomputeWithoutAutocast, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  const auto passes = BothPasses(bench, kWithoutAutocast, 0.5, {.from = 5});
  EXPECT_EQ(passes.at(1).scalar_type(), at::kBFloat16);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
