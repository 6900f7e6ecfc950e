#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(UnmaskTargets, CountsAllAndSaysSoOnce) {
  FaultBench bench;
  const auto unmask = bench.Make("data.unmask_targets");
  const auto data = Wrapped<SequenceData>(*unmask);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_TRUE(data->Get(0).weight.equal(at::ones({6})));
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 4);
  EXPECT_EQ(bench.fired()[0]["after"], 6);
  const auto nothing = bench.Make("data.unmask_targets");
  Wrapped<LabelledData>(*nothing)->Get(0);
  EXPECT_EQ(bench.fired().size(), 1U) << "there was no mask";
}

}  // namespace
}  // namespace trainwreck
