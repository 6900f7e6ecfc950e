#include <gtest/gtest.h>

#include "injectors/optimizer/testing_groups.h"

namespace trainwreck {
namespace {

using Lowered = std::pair<double, double>;
constexpr char kDecayAllGroups[] = "optimizer.decay_all_groups";

TEST(DecayAllGroups, LetsTheSecondGroupDecay) {
  FaultBench bench;
  TwoGroups it(bench, kDecayAllGroups);
  EXPECT_EQ(it.Step(0.25), Lowered(0.375, 0.375));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0],
            Json({{"id", "it"}, {"fault", kDecayAllGroups}, {"before", 0.0}, {"after", 0.5}}));
}

TEST(DecayAllGroups, AlsoWhereAllWereToHaveNone) {
  FaultBench bench;
  TwoGroups it(bench, kDecayAllGroups, "*");
  EXPECT_EQ(it.Step(0.25), Lowered(0.375, 0.375));
  EXPECT_EQ(bench.fired().size(), 1U);
}

TEST(DecayAllGroups, LeavesNoEvidenceWhereThereIsOneGroup) {
  FaultBench bench;
  TwoGroups it(bench, kDecayAllGroups, "");
  it.Step(0.25);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
