#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/collective/testing_group.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(CollectiveCorruptPart, TheSumHasTheDamage) {
  FaultBench bench(1, 2);
  const auto corrupt = bench.Make("collective.corrupt_part", {{"bit", 31}});
  PartWrapper& wrapper = *corrupt;
  int made = 0;
  const auto group = wrapper.Wrap(std::unique_ptr<Communicator>(std::make_unique<FakeGroup>(made)));
  const auto hook = wrapper.MakeHook();
  for (int round = 0; round < 2; ++round) {  // the second one after a rollback
    hook->OnStepBegin(0);
    hook->OnBackwardDone(0);
    at::Tensor tensor = at::full({8}, 1.0f);
    group->AllReduce(tensor, Reduction::kSum);
    EXPECT_EQ(tensor.eq(-2).sum().item<int>(), round == 0 ? 1 : 0);
    EXPECT_EQ(tensor.eq(2).sum().item<int>(), round == 0 ? 7 : 8);
    hook->OnStepEnd(0);
  }
  EXPECT_EQ(made, 2);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 1.0);  // of this rank's part, not of the sum
  EXPECT_EQ(bench.fired()[0]["after"], -1.0);
}

}  // namespace
}  // namespace trainwreck
