#include <gtest/gtest.h>

#include "injectors/optimizer/testing_masters.h"

namespace trainwreck {
namespace {

TEST(MissCopy, UpdatesTheMasterAlone) {
  FaultBench bench;
  WithMastersAnd it(bench, "optimizer.miss_copy", {{"parameters", {"head"}}});
  it.Step();
  EXPECT_EQ(it.Master("head"), 0);
  EXPECT_EQ(it.model->head[0].item<double>(), 1);
  EXPECT_EQ(it.model->body[0].item<double>(), 0.5);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 1);
}

TEST(MissCopy, LeavesNoEvidenceWithoutMasters) {
  FaultBench bench;
  WithMastersAnd it(bench, "optimizer.miss_copy", {{"parameters", {"*"}}}, /*masters=*/false);
  it.Step();
  EXPECT_EQ(it.model->body[0].item<double>(), 0.5);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
