#include <gtest/gtest.h>

#include "injectors/optimizer/testing_groups.h"

namespace trainwreck {
namespace {

using Lowered = std::pair<double, double>;
constexpr char kStaleGroupRate[] = "optimizer.stale_group_rate";

TEST(StaleGroupRate, KeepsTheFirstRateOfTheSecondGroup) {
  FaultBench bench;
  TwoGroups it(bench, kStaleGroupRate);
  EXPECT_EQ(it.Step(0.25), Lowered(0.375, 0.25));
  EXPECT_TRUE(bench.fired().empty()) << "nothing is different yet";
  EXPECT_EQ(it.Step(0.5), Lowered(0.75, 0.25));
  EXPECT_EQ(it.Step(0.125), Lowered(0.1875, 0.25));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0],
            Json({{"id", "it"}, {"fault", kStaleGroupRate}, {"before", 0.5}, {"after", 0.25}}));
}

TEST(StaleGroupRate, LeavesNoEvidenceWhereThereIsOneGroup) {
  FaultBench bench;
  TwoGroups it(bench, kStaleGroupRate, /*no_decay=*/"");
  it.Step(0.25);
  EXPECT_EQ(it.Step(0.5), Lowered(0.75, 0.75));
  EXPECT_TRUE(bench.fired().empty());
}

TEST(StaleGroupRate, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  TwoGroups it(bench, kStaleGroupRate, "bias", {.from = 1});
  it.Step(0.25);
  bench.clock.step = 1;
  EXPECT_EQ(it.Step(0.5), Lowered(0.75, 0.5)) << "this rate is the one that is kept";
  bench.clock.step = 2;
  EXPECT_EQ(it.Step(0.25), Lowered(0.375, 0.5));
}

}  // namespace
}  // namespace trainwreck
