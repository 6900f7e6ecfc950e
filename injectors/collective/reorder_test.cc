#include "injectors/collective/testing_calls.h"

namespace trainwreck {
namespace {

TEST(Reorder, SwapsTheFirstTwo) {
  FaultBench bench(1, 2);
  EXPECT_EQ(CallsUnder(bench, "collective.reorder"),
            (Calls{"[4] float32", "[3] float32", "[5] float32", "broadcast", "barrier"}));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({0, 1}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({1, 0}));
}

TEST(Reorder, LeavesALoneOneOut) {
  FaultBench bench(1, 2);
  EXPECT_EQ(CallsUnder(bench, "collective.reorder", {{"calls", {1}}}),
            (Calls{"[3] float32", "[5] float32", "broadcast", "barrier"}));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({1}));
  EXPECT_EQ(bench.fired()[0]["after"], Json::array());
}

TEST(Reorder, LeavesOtherRanksAlone) { ExpectLeftAloneOnOtherRanks("collective.reorder"); }

}  // namespace
}  // namespace trainwreck
