#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "injectors/optimizer/testing_masters.h"

namespace trainwreck {
namespace {

TEST(StaleMasters, OverwriteWhatWasLoaded) {
  FaultBench bench;
  WithMastersAnd it(bench, "optimizer.stale_masters");
  it.model->body.detach().fill_(4);
  it.optimizer->Load({{"optimizer.master.body", at::ones({2}) * 4}});
  EXPECT_EQ(it.Master("body"), 1);
  it.Step();
  EXPECT_EQ(it.model->body[0].item<double>(), 0.5);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 1);
  EXPECT_EQ(bench.fired()[0]["after"], 0);
}

TEST(StaleMasters, LeaveNoEvidenceWithoutMasters) {
  FaultBench bench;
  WithMastersAnd it(bench, "optimizer.stale_masters", {}, /*masters=*/false);
  it.optimizer->Load({{"model.body", at::ones({2})}});
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
