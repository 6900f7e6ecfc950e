#include "injectors/collective/testing_calls.h"

namespace trainwreck {
namespace {

TEST(OtherRoot, TakesItselfForTheRoot) {
  FaultBench bench(1, 2);
  EXPECT_EQ(CallsUnder(bench, "collective.other_root")[3], "broadcast_from_1");
  EXPECT_EQ(bench.fired()[0]["before"], 0);
  EXPECT_EQ(bench.fired()[0]["after"], 1);
}

TEST(OtherRoot, LeavesOtherRanksAlone) { ExpectLeftAloneOnOtherRanks("collective.other_root"); }

}  // namespace
}  // namespace trainwreck
