#include "injectors/collective/testing_calls.h"

namespace trainwreck {
namespace {

TEST(OtherShape, SendsFewerOrOtherNumbers) {
  FaultBench bench(1, 2);
  EXPECT_EQ(CallsUnder(bench, "collective.other_shape", {{"calls", {0}}})[0], "[2] float32");
  EXPECT_EQ(CallsUnder(bench, "collective.other_shape", {{"calls", {0}}, {"how", "double"}})[0],
            "[3] float64");
  EXPECT_EQ(CallsUnder(bench, "collective.other_shape", {{"calls", {0}}, {"how", "int32"}})[0],
            "[3] int32");
  EXPECT_EQ(bench.fired()[0]["before"], "3 Float");
  EXPECT_EQ(bench.fired()[0]["after"], "2 Float");
}

TEST(OtherShape, LeavesOtherRanksAlone) { ExpectLeftAloneOnOtherRanks("collective.other_shape"); }

}  // namespace
}  // namespace trainwreck
